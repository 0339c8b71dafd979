# class: secrets
# tries: find in the own environment what whoever runs the instance has in theirs
# stopped-by: environment.allowlist
# witness: secret
# source: https://github.com/judge0/judge0/issues/564

import os, sys

if "PROBE_CANARY" in os.environ:
    print("REACHED PROBE_CANARY=" + os.environ["PROBE_CANARY"])
    sys.exit(0)
print("STOPPED no such variable among", len(os.environ))
sys.exit(1)
