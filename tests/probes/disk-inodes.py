# class: disk
# tries: make more files in /tmp than its quota
# stopped-by: tmp.quota
# limits: tmp_inodes=64

import errno, os, shutil, sys, tempfile

folder = tempfile.mkdtemp(dir="/tmp")
failed = None
try:
    for number in range(512):
        os.close(os.open(os.path.join(folder, str(number)), os.O_CREAT | os.O_WRONLY))
except OSError as error:
    failed = errno.errorcode[error.errno]
shutil.rmtree(folder)
if failed:
    print("STOPPED open:", failed, "after", number)
    sys.exit(1)
print("REACHED 512 files in /tmp")
