# class: network
# tries: connect to a TCP port on the loopback of the machine
# stopped-by: namespace.net seccomp landlock.net
# needs: tcp
# witness: tcp
# source: CVE-2024-29021

import errno, socket, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
host, port = given["tcp"].rsplit(":", 1)
try:
    peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    peer.settimeout(1)
    peer.connect((host, int(port)))
    peer.sendall(b"x")
    reply = peer.recv(4096)
except OSError as error:
    print("STOPPED socket or connect:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the port, which said", reply.decode(errors="replace").strip())
