# class: posture
# kind: posture
# tries: have another variable than the three that every call gets
# stopped-by: environment.allowlist

import os, sys

more = sorted(set(os.environ) - {"PATH", "HOME", "LANG", "LC_CTYPE"})
if more:
    print("REACHED", len(more), "more variables, among them", more[0])
    sys.exit(0)
print("STOPPED", *sorted(os.environ))
sys.exit(1)
