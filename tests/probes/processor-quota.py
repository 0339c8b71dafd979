# class: processor
# tries: use more of the processors than the quota, in two processes for a second
# stopped-by: cgroup.cpu
# limits: cpu_millis=100 wall_ms=5000
# witness: throttled

import os, sys, time

def spin():
    began = time.monotonic()
    while time.monotonic() - began < 1:
        pass

began = time.monotonic()
child = os.fork()
spin()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
wall = time.monotonic() - began
times = os.times()
used = times.user + times.system + times.children_user + times.children_system
# The quota is a tenth of a processor, and a busy machine leaves little: twice the quota is past it.
if used > 0.2 * wall + 0.05:
    print("REACHED %.1f s of processor time in %.1f s" % (used, wall))
    sys.exit(0)
print("STOPPED with %.2f s of processor time in %.1f s" % (used, wall))
sys.exit(1)
