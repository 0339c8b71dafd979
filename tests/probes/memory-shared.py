# class: memory
# tries: use four times the memory of the limit as a shared mapping without a file
# stopped-by: cgroup.memory
# limits: memory_bytes=67108864

import errno, mmap, sys

try:
    shared = mmap.mmap(-1, 256 << 20)
    for at in range(0, 256 << 20, 4096):
        shared[at] = 1
except (OSError, MemoryError) as error:
    print("STOPPED mmap:", errno.errorcode.get(getattr(error, "errno", None), error))
    sys.exit(1)
print("REACHED 256 MiB of shared memory")
