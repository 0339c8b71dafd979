# class: files
# tries: set the times of a file of the machine that everybody may write, which Landlock does not restrict
# stopped-by: namespace.mount
# needs: target
# witness: target

import errno, os, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    before = os.stat(given["target"]).st_ctime_ns
    os.utime(given["target"])
    after = os.stat(given["target"]).st_ctime_ns
except OSError as error:
    print("STOPPED stat or utimensat:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the file: its times moved by", after - before, "ns")
