# class: posture
# kind: posture
# tries: be root of the machine, as the map of ids tells, or be in one of its groups
# stopped-by: identity.unprivileged
# source: CVE-2019-5736

import os, sys

def outside(of, file):
    for line in open(file):
        inside, first, count = map(int, line.split())
        if inside <= of < inside + count:
            return first + of - inside
    return None

user = outside(os.geteuid(), "/proc/self/uid_map")
group = outside(os.getegid(), "/proc/self/gid_map")
more = [number for number in os.getgroups() if number != os.getegid()]
if user == 0 or group == 0 or more:
    print("REACHED user", user, "group", group, "more groups", more)
    sys.exit(0)
print("STOPPED user", user, "group", group, "and no more groups")
sys.exit(1)
