# class: disk
# tries: write a file that is larger than the limit of one file
# stopped-by: rlimits
# limits: file_bytes=1048576

import errno, os, sys, tempfile

# Python ignores SIGXFSZ, so that the error shows.
file = tempfile.TemporaryFile(dir="/tmp", buffering=0)
try:
    for _ in range(32):
        file.write(b"x" * 131072)
except OSError as error:
    print("STOPPED write:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED", os.fstat(file.fileno()).st_size >> 20, "MiB in one file")
