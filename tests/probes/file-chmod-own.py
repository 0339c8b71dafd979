# class: files
# tries: set the mode of a file of the user who runs the instance, which Landlock does not restrict
# stopped-by: namespace.mount identity.unprivileged
# needs: own-target
# witness: target

import errno, os, stat, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    os.chmod(given["own-target"], 0o640)
    mode = stat.S_IMODE(os.stat(given["own-target"]).st_mode)
except OSError as error:
    print("STOPPED chmod:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the file: its mode is %04o" % mode)
