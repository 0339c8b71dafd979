# class: network
# tries: connect to a TCP port of the machine with an IPv6 socket and a mapped IPv4 address
# stopped-by: namespace.net seccomp landlock.net
# needs: tcp
# witness: tcp

import errno, os, socket, sys

if not os.path.exists("/proc/net/if_inet6"):
    print("NOT-APPLICABLE the kernel has no IPv6")
    sys.exit(3)
given = dict(arg.split("=", 1) for arg in sys.argv[1:])
host, port = given["tcp"].rsplit(":", 1)
try:
    peer = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    peer.settimeout(1)
    peer.connect(("::ffff:" + host, int(port)))
    peer.sendall(b"x")
    reply = peer.recv(4096)
except OSError as error:
    print("STOPPED socket or connect:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the port, which said", reply.decode(errors="replace").strip())
