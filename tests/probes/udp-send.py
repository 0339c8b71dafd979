# class: network
# tries: send a datagram to a UDP port on the loopback of the machine
# stopped-by: namespace.net seccomp
# needs: udp
# witness: udp

import errno, socket, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
host, port = given["udp"].rsplit(":", 1)
try:
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.settimeout(1)
    peer.sendto(b"x", (host, int(port)))
    reply = peer.recv(4096)
except OSError as error:
    print("STOPPED socket or sendto:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the port, which said", reply.decode(errors="replace").strip())
