# class: covert
# tries: take a lease on a file that all cells share, which holds up who opens it for writing
# stopped-by: seccomp identity.unprivileged
# source: isolate 2.4 (i-node operations)
import errno, fcntl, os, sys

try:
    file = os.open("/usr/bin/env", os.O_RDONLY)
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
except OSError as error:
    print("STOPPED open or fcntl:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED a lease on /usr/bin/env")
