# class: descriptors
# tries: have more descriptors open than the limit
# stopped-by: rlimits
# limits: open_files=32

import errno, os, sys

kept = []
try:
    for _ in range(256):
        kept.append(os.dup(2))
except OSError as error:
    print("STOPPED dup:", errno.errorcode[error.errno], "after", len(kept))
    sys.exit(1)
print("REACHED", len(kept), "descriptors")
