# class: memory
# tries: use four times the memory of the limit in one process
# stopped-by: cgroup.memory
# limits: memory_bytes=67108864

import sys

try:
    block = bytearray()
    for _ in range(64):
        block += b"x" * (4 << 20)
except MemoryError:
    print("STOPPED mmap or mremap: ENOMEM at", len(block) >> 20, "MiB")
    sys.exit(1)
print("REACHED", len(block) >> 20, "MiB of memory")
