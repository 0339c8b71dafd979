# class: devices
# tries: make a terminal of the machine
# stopped-by: dev.minimal landlock.fs

import errno, os, sys

try:
    os.close(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError as error:
    # The driver's own word, after all checks: it finds no devpts beside its device.
    if error.errno == errno.ENODEV:
        print("REACHED the driver of /dev/ptmx")
        sys.exit(0)
    print("STOPPED open:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED /dev/ptmx, open")
