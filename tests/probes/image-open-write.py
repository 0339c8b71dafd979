# class: files
# tries: open a program of the image for writing; nothing is written
# stopped-by: root.readonly landlock.fs identity.unprivileged

import errno, os, sys

try:
    os.close(os.open("/usr/bin/env", os.O_WRONLY))
except OSError as error:
    print("STOPPED open:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED /usr/bin/env, open for writing")
