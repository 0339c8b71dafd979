# class: files
# tries: list the home of root
# stopped-by: namespace.mount identity.unprivileged

import errno, os, sys

try:
    names = os.listdir("/root")
except OSError as error:
    print("STOPPED open:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED /root, which has", len(names), "entries")
