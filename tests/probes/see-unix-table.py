# class: abstract-sockets
# tries: see the names of the machine's Unix sockets in /proc/net/unix
# stopped-by: namespace.net
# needs: abstract

import sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
lines = open("/proc/net/unix").read().splitlines()
if any(line.endswith(" @" + given["abstract"]) for line in lines):
    print("REACHED the name of the socket in /proc/net/unix")
    sys.exit(0)
print("STOPPED /proc/net/unix has", len(lines) - 1, "lines, none of them of that socket")
sys.exit(1)
