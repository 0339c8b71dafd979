# class: memory
# tries: use four times the memory of the limit in files that exist in memory only (memfd)
# stopped-by: cgroup.memory
# limits: memory_bytes=67108864 file_bytes=67108864

import errno, os, sys

files, block = [], b"x" * (1 << 20)
try:
    for _ in range(16):
        files.append(os.memfd_create("probe"))
        for _ in range(16):
            os.write(files[-1], block)
except OSError as error:
    print("STOPPED memfd_create or write:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED 256 MiB in", len(files), "files")
