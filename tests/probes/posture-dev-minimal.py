# class: posture
# kind: posture
# tries: find a device in /dev beside the five harmless ones
# stopped-by: dev.minimal

import os, stat, sys

harmless = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9)}
found = []
for name in os.listdir("/dev"):
    info = os.lstat("/dev/" + name)
    if stat.S_ISBLK(info.st_mode) or stat.S_ISCHR(info.st_mode):
        if (os.major(info.st_rdev), os.minor(info.st_rdev)) not in harmless:
            found.append(name)
if found:
    print("REACHED", len(found), "devices, among them", found[0])
    sys.exit(0)
print("STOPPED null, zero, full, random and urandom are all")
sys.exit(1)
