# class: memory
# tries: lock a mebibyte in memory, so that the machine cannot take it back
# stopped-by: rlimits
import ctypes, errno, mmap, sys

libc = ctypes.CDLL(None, use_errno=True)
block = mmap.mmap(-1, 1 << 20)
address = ctypes.addressof(ctypes.c_char.from_buffer(block))
if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(1 << 20)):
    print("STOPPED mlock:", errno.errorcode[ctypes.get_errno()])
    sys.exit(1)
print("REACHED 1 MiB of locked memory")
