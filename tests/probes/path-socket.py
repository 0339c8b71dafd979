# class: path-sockets
# tries: connect to a Unix socket of the machine by its path
# stopped-by: namespace.mount
# needs: socket
# witness: socket
# source: https://github.com/cdk-team/CDK (docker.sock)

import errno, socket, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(1)
    peer.connect(given["socket"])
except OSError as error:
    print("STOPPED socket or connect:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the socket")
