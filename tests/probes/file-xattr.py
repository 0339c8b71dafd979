# class: files
# tries: set an extended attribute of a file of the machine that everybody may write
# stopped-by: namespace.mount
# needs: target
# witness: target

import errno, os, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    os.setxattr(given["target"], "user.probe", b"1")
except OSError as error:
    if error.errno == errno.ENOTSUP:
        print("NOT-APPLICABLE the file system of that file has no user attributes")
        sys.exit(3)
    print("STOPPED setxattr:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the file and set user.probe")
