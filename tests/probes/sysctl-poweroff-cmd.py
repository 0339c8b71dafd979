# class: sysctl
# tries: set the program that the kernel starts to power off to what it is
# stopped-by: proc.masked landlock.fs identity.unprivileged
# source: proc_sys_kernel(5)

import errno, os, sys

name = "/proc/sys/kernel/poweroff_cmd"
try:
    value = open(name).read()
    file = os.open(name, os.O_WRONLY)
    os.write(file, value.encode())
except OSError as error:
    print("STOPPED open or write:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED", name, "which is", value.strip())
