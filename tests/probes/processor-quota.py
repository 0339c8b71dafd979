# class: processor
# tries: compute for a second as if there were no quota
# stopped-by: cgroup.cpu
# limits: cpu_millis=40 wall_ms=30000 cpu_ms=20000
# witness: throttled

import sys, time

# How much it got cannot be told from inside: a busy machine may leave as little as a quota does. The kernel counts
# whether the group was held back, and that decides.
began, before = time.monotonic(), time.process_time()
while time.monotonic() < began + 1:
    pass
print("REACHED %.2f s of processor time in a second" % (time.process_time() - before))
sys.exit(0)
