# class: posture
# kind: posture
# tries: find a mount without nosuid, or one without nodev that is not of /dev
# stopped-by: mounts.nosuid-nodev

import sys

found = []
for line in open("/proc/self/mountinfo"):
    place, options = line.split()[4:6]
    options = options.split(",")
    if "nosuid" not in options or ("nodev" not in options and not (place + "/").startswith("/dev/")):
        found.append(place)
if found:
    print("REACHED", len(found), "mounts, the first at", found[0])
    sys.exit(0)
print("STOPPED all mounts have nosuid, and all but /dev nodev")
sys.exit(1)
