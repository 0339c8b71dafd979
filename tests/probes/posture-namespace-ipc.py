# class: posture
# kind: posture
# tries: see a semaphore set of the machine in the table of the own ipc namespace
# stopped-by: namespace.ipc
# needs: sem
# source: ipc_namespaces(7)

import sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
lines = [line.split() for line in open("/proc/sysvipc/sem").read().splitlines()[1:]]
if any(line[1] == given["sem"] for line in lines):
    print("REACHED the line of semaphore set", given["sem"])
    sys.exit(0)
print("STOPPED the table has", len(lines), "lines, none of them of that set")
sys.exit(1)
