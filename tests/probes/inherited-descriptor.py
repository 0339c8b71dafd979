# class: descriptors
# tries: use a descriptor that was inherited from the runtime
# stopped-by: fds.closed
# source: CVE-2024-21626
import os, sys

names = []
for number in sorted(int(name) for name in os.listdir("/proc/self/fd")):
    if number < 3:
        continue
    try:
        # The list's own descriptor is closed by now.
        os.fstat(number)
        names.append("%d %s" % (number, os.readlink("/proc/self/fd/%d" % number)))
    except OSError:
        pass
if names:
    print("REACHED", ", ".join(names))
    sys.exit(0)
print("STOPPED fstat: EBADF from 3 on")
sys.exit(1)
