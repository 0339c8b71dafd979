# class: memory
# tries: use twice the memory of the limit in names of empty files, which are the kernel's
# stopped-by: cgroup.memory
# limits: memory_bytes=33554432 tmp_inodes=100000

import errno, os, shutil, sys, tempfile

folder = tempfile.mkdtemp(dir="/dev/shm")
handle = os.open(folder, os.O_PATH)
failed = None
try:
    # Each takes well over a kibibyte: an inode, an entry, a name that does not fit into it, and a target.
    for number in range(60000):
        os.symlink("x" * 100, "%0200d" % number, dir_fd=handle)
except OSError as error:
    failed = errno.errorcode[error.errno]
shutil.rmtree(folder)
if failed:
    print("STOPPED symlink:", failed, "after", number)
    sys.exit(1)
print("REACHED 60000 names")
