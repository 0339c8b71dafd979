# class: disk
# tries: fill /tmp past its quota
# stopped-by: tmp.quota
# limits: tmp_bytes=4194304

import errno, os, shutil, sys, tempfile

folder, block = tempfile.mkdtemp(dir="/tmp"), b"x" * (1 << 20)
failed = None
try:
    for number in range(16):
        with open(os.path.join(folder, str(number)), "wb", buffering=0) as file:
            # A short write is the quota's too.
            if file.write(block) < len(block):
                file.write(block)
except OSError as error:
    failed = errno.errorcode[error.errno]
shutil.rmtree(folder)
if failed:
    print("STOPPED write:", failed, "in file", number)
    sys.exit(1)
print("REACHED 16 MiB in /tmp")
