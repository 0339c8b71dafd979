# class: posture
# kind: posture
# tries: have more descriptors than the standard three
# stopped-by: fds.closed

import os, sys

# The highest is the list's own.
numbers = sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]
if numbers != [0, 1, 2]:
    print("REACHED", *numbers)
    sys.exit(0)
print("STOPPED 0, 1 and 2 are all")
sys.exit(1)
