# class: posture
# kind: posture
# tries: have another parent than the first process of the own pid namespace
# stopped-by: namespace.pid
# source: pid_namespaces(7)

import os, sys

if os.getppid() != 1:
    print("REACHED process", os.getpid(), "with parent", os.getppid())
    sys.exit(0)
print("STOPPED process", os.getpid(), "is a child of process 1")
sys.exit(1)
