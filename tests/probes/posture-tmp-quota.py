# class: posture
# kind: posture
# tries: have a /tmp that is larger than the limit
# stopped-by: tmp.quota
# limits: tmp_bytes=8388608 tmp_inodes=512

import os, sys

info = os.statvfs("/tmp")
size, files = info.f_blocks * info.f_frsize, info.f_files
# A file system without a quota may say 0.
if not (0 < size <= 8388608 and 0 < files <= 512):
    print("REACHED a /tmp of", size, "bytes and", files, "files")
    sys.exit(0)
print("STOPPED /tmp has", size, "bytes and", files, "files")
sys.exit(1)
