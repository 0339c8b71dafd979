# class: files
# tries: set the mode of a program of the image to what it is, which Landlock does not restrict
# stopped-by: root.readonly identity.unprivileged

import errno, os, stat, sys

try:
    mode = stat.S_IMODE(os.stat("/usr/bin/env").st_mode)
    os.chmod("/usr/bin/env", mode)
except OSError as error:
    print("STOPPED chmod:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED /usr/bin/env, mode %04o" % mode)
