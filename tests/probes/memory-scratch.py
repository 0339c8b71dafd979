# class: memory
# tries: use four times the memory of the limit in files in /tmp, whose quota is wider
# stopped-by: cgroup.memory
# limits: memory_bytes=67108864 tmp_bytes=536870912 file_bytes=67108864

import errno, os, shutil, sys, tempfile

folder, block = tempfile.mkdtemp(dir="/tmp"), b"x" * (1 << 20)
failed = None
try:
    for number in range(16):
        with open(os.path.join(folder, str(number)), "wb", buffering=0) as file:
            for _ in range(16):
                file.write(block)
except OSError as error:
    failed = errno.errorcode[error.errno]
shutil.rmtree(folder)
if failed:
    print("STOPPED write:", failed)
    sys.exit(1)
print("REACHED 256 MiB in files")
