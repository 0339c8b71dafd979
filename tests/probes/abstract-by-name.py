# class: abstract-sockets
# tries: connect to an abstract Unix socket of the machine
# stopped-by: namespace.net landlock.scope
# needs: abstract
# witness: abstract
# source: CVE-2020-15257

import errno, socket, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(1)
    peer.connect("\0" + given["abstract"])
    reply = peer.recv(4096)
except OSError as error:
    print("STOPPED socket or connect:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the socket, which said", reply.decode(errors="replace").strip())
