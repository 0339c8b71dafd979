# class: disk
# tries: make a tree of folders in /tmp that is deeper than its quota of files, and than a path can be long
# stopped-by: tmp.quota
# limits: tmp_inodes=256
# source: CVE-2021-3997

import errno, os, sys

# 300 times 20 bytes are more than PATH_MAX: each level is made from within the one above.
os.chdir("/tmp")
top, failed, depth = "probe-%d" % os.getpid(), None, 0
try:
    os.mkdir(top)
    os.chdir(top)
    for depth in range(300):
        os.mkdir("folder-of-a-long-name")
        os.chdir("folder-of-a-long-name")
except OSError as error:
    failed = errno.errorcode[error.errno]
# Up again one by one, as no path leads down.
for _ in range(depth + 1):
    os.chdir("..")
    for name in ("folder-of-a-long-name", top):
        try:
            os.rmdir(name)
        except OSError:
            pass
if failed:
    print("STOPPED mkdir:", failed, "at depth", depth)
    sys.exit(1)
print("REACHED depth", depth + 1)
