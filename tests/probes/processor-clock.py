# class: processor
# tries: use three times the processor time of the limit
# stopped-by: cpu-clock
# limits: cpu_ms=300 wall_ms=20000

import time

while time.process_time() < 0.9:
    pass
print("REACHED %.1f s of processor time" % time.process_time())
