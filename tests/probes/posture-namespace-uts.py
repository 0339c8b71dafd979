# class: posture
# kind: posture
# tries: have the machine's host name
# stopped-by: namespace.uts
# needs: hostname
# source: uts_namespaces(7)

import os, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
name = os.uname().nodename
if name == given["hostname"]:
    print("REACHED the machine's name", name)
    sys.exit(0)
print("STOPPED the name is", name)
sys.exit(1)
