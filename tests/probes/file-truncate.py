# class: files
# tries: change the length of a file of the machine by truncate(2), which opens nothing
# stopped-by: namespace.mount landlock.fs
# needs: target
# witness: target

import errno, os, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    os.truncate(given["target"], 3)
except OSError as error:
    print("STOPPED truncate:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the file and changed its length")
