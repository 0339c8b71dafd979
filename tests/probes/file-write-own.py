# class: files
# tries: write to a file of the user who runs the instance
# stopped-by: namespace.mount landlock.fs identity.unprivileged
# needs: own-target
# witness: target

import errno, os, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    file = os.open(given["own-target"], os.O_WRONLY | os.O_APPEND)
    os.write(file, b"written\n")
except OSError as error:
    print("STOPPED open or write:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the file and wrote to it")
