# class: devices
# tries: open the kernel's log for writing; nothing is written
# stopped-by: dev.minimal landlock.fs identity.unprivileged

import errno, os, sys

try:
    os.close(os.open("/dev/kmsg", os.O_WRONLY))
except OSError as error:
    print("STOPPED open:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED /dev/kmsg, open")
