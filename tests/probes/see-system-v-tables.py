# class: ipc
# tries: see the machine's shared memory segments and message queues in /proc/sysvipc
# stopped-by: namespace.ipc
# needs: shm msg
# source: runc tests (TestIPCPrivate)

import sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
count = 0
for name in ("shm", "msg"):
    for line in open("/proc/sysvipc/" + name).read().splitlines()[1:]:
        count += 1
        if line.split()[1] == given[name]:
            print("REACHED the line of", name, given[name])
            sys.exit(0)
print("STOPPED the tables have", count, "lines, none of them of those")
sys.exit(1)
