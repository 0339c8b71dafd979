# class: posture
# kind: posture
# tries: bind a TCP socket to a port of any address, which works in an empty network as well
# stopped-by: landlock.net seccomp
# source: landlock(7)

import errno, socket, sys

try:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM).bind(("0.0.0.0", 0))
except OSError as error:
    print("STOPPED socket or bind:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED a port")
