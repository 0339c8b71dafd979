# class: network
# tries: be connected to on a TCP port of the machine's loopback
# stopped-by: namespace.net seccomp landlock.net

import errno, socket, sys

try:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    # In an empty network binding works. So somebody has to come: ourselves, by another socket.
    with socket.create_connection(server.getsockname(), timeout=1) as peer:
        peer.sendall(b"x")
except OSError as error:
    print("STOPPED socket, bind or connect:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the port", server.getsockname()[1])
