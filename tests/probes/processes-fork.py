# class: process-count
# tries: have four times as many processes as the limit at once
# stopped-by: cgroup.pids
# limits: pids=16

import errno, os, signal, sys

children, failed = [], None
for _ in range(64):
    try:
        child = os.fork()
    except OSError as error:
        failed = errno.errorcode[error.errno]
        break
    if child == 0:
        signal.pause()
    children.append(child)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
if failed:
    print("STOPPED fork:", failed, "after", len(children))
    sys.exit(1)
print("REACHED", len(children), "processes")
