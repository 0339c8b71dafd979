# class: posture
# kind: posture
# tries: open a message queue, whose file system is in no rule of Landlock's; nothing else would refuse it
# stopped-by: landlock.fs
# source: landlock(7)

import ctypes, errno, os, sys

# mq_maxmsg and mq_msgsize are the second and third of eight longs: small, for the limit of queues.
attributes = (ctypes.c_long * 8)(0, 1, 16, 0, 0, 0, 0, 0)
libc = ctypes.CDLL(None, use_errno=True)
name = b"/probe-%d" % os.getpid()
queue = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, attributes)
error = ctypes.get_errno()
libc.mq_unlink(name)
if queue >= 0:
    print("REACHED a message queue")
    sys.exit(0)
if error == errno.ENOSYS and not os.path.exists("/proc/sys/fs/mqueue"):
    print("NOT-APPLICABLE the kernel has no POSIX message queues")
    sys.exit(3)
print("STOPPED mq_open:", errno.errorcode[error])
sys.exit(1)
