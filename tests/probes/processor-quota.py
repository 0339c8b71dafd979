# class: processor
# tries: use more of the processors than the quota, in two processes for a second and a half
# stopped-by: cgroup.cpu
# limits: cpu_millis=100 wall_ms=6000
# witness: throttled

import os, sys, time

def spin():
    """Computes for a while, and counts how often it was kept from that for a twentieth of a second."""
    gaps, last = 0, time.monotonic()
    end = last + 1.5
    while last < end:
        now = time.monotonic()
        gaps += now - last > 0.05
        last = now
    return gaps

began, before = time.monotonic(), sum(os.times()[:4])
child = os.fork()
gaps = spin()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
wall, used = time.monotonic() - began, sum(os.times()[:4]) - before
# The quota is a tenth of a processor and its period a tenth of a second: it shows as a gap in each period. A busy
# machine may leave as little, but in smaller pieces.
if used > 0.12 * wall + 0.02 or gaps < 5 * wall:
    print("REACHED %.2f s of processor time in %.1f s, with %d gaps" % (used, wall, gaps))
    sys.exit(0)
print("STOPPED with %.2f s of processor time in %.1f s, with %d gaps" % (used, wall, gaps))
sys.exit(1)
