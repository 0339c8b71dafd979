# class: outliving
# tries: be past the limit of the wall clock by being stopped (SIGSTOP) when it comes
# stopped-by: wall-clock
# limits: wall_ms=600
# source: https://github.com/opencontainers/runc/issues/3135

import os, signal, time

parent = os.getpid()
if os.fork() == 0:
    os.kill(parent, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(parent, signal.SIGCONT)
    os._exit(0)
os.wait()
print("REACHED a time more than twice the limit")
