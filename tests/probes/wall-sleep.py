# class: outliving
# tries: sleep past the limit of the wall clock, heeding no signal
# stopped-by: wall-clock
# limits: wall_ms=600

import signal, time

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
time.sleep(1.8)
print("REACHED a time three times the limit")
