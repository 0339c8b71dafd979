# class: disk
# tries: make a file of a tebibyte that takes no room
# stopped-by: rlimits

import errno, os, sys, tempfile

file = tempfile.TemporaryFile(dir="/tmp", buffering=0)
try:
    os.ftruncate(file.fileno(), 1 << 40)
except OSError as error:
    print("STOPPED ftruncate:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED", os.fstat(file.fileno()).st_size >> 30, "GiB in one file")
