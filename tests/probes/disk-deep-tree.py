# class: disk
# tries: make a tree of folders in /tmp that is deeper than its quota of files, and than a path can be long
# stopped-by: tmp.quota
# limits: tmp_inodes=256
# source: CVE-2021-3997

import errno, os, sys

# 300 times 22 bytes are more than PATH_MAX: each level is made from within the one above.
os.chdir("/tmp")
names, failed = [], None
try:
    for level in range(300):
        name = "folder-of-a-long-name" if names else "probe-%d" % os.getpid()
        os.mkdir(name)
        os.chdir(name)
        names.append(name)
except OSError as error:
    failed = errno.errorcode[error.errno]
depth = len(names)
# Up again one by one, as no path leads down.
while names:
    os.chdir("..")
    os.rmdir(names.pop())
if failed:
    print("STOPPED mkdir:", failed, "at depth", depth)
    sys.exit(1)
print("REACHED depth", depth)
