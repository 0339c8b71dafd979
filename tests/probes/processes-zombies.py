# class: process-count
# tries: have four times as many processes as the limit that have ended and that nobody waits for
# stopped-by: cgroup.pids
# limits: pids=16

import errno, os, sys

count, failed = 0, None
for count in range(64):
    try:
        if os.fork() == 0:
            os._exit(0)
    except OSError as error:
        failed = errno.errorcode[error.errno]
        break
if failed:
    print("STOPPED fork:", failed, "after", count)
    sys.exit(1)
print("REACHED", count + 1, "processes")
