# class: files
# tries: make a folder in the root, and remove it
# stopped-by: root.readonly landlock.fs capabilities

import errno, os, sys

name = "/probe-%d" % os.getpid()
try:
    os.mkdir(name)
    os.rmdir(name)
except OSError as error:
    print("STOPPED mkdir:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the root: made and removed", name)
