# class: posture
# kind: posture
# tries: have the root or the programs on a mount that can be written
# stopped-by: root.readonly

import os, sys

writable = [path for path in ("/", "/usr") if not os.statvfs(path).f_flag & os.ST_RDONLY]
if writable:
    print("REACHED mounts without ro:", " ".join(writable))
    sys.exit(0)
print("STOPPED / and /usr are ro")
sys.exit(1)
