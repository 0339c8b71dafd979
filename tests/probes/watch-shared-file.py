# class: covert
# tries: be told when somebody else opens a program that all cells share
# stopped-by: seccomp
# source: isolate 2.4 (i-node operations)
import ctypes, errno, sys

libc = ctypes.CDLL(None, use_errno=True)
# 0x20 is IN_OPEN.
watch = libc.inotify_add_watch(libc.inotify_init1(0), b"/usr/bin/env", 0x20)
if watch < 0:
    print("STOPPED inotify_add_watch:", errno.errorcode[ctypes.get_errno()])
    sys.exit(1)
print("REACHED a watch on /usr/bin/env")
