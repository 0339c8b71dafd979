# class: sysctl
# tries: set the handler of core dumps to what it is
# stopped-by: proc.masked landlock.fs identity.unprivileged
# source: CVE-2025-52881

import errno, os, sys

name = "/proc/sys/kernel/core_pattern"
try:
    value = open(name).read()
    file = os.open(name, os.O_WRONLY)
    os.write(file, value.encode())
except OSError as error:
    print("STOPPED open or write:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED", name, "which is", value.strip())
