# class: network
# tries: listen on a TCP port of the machine's loopback, so that others of the machine could connect
# stopped-by: namespace.net seccomp landlock.net
import errno, socket, sys

try:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Where the loopback is down the address does not exist, and bind fails.
    server.bind(("127.0.0.1", 0))
    server.listen(1)
except OSError as error:
    print("STOPPED socket, bind or listen:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the port", server.getsockname()[1])
