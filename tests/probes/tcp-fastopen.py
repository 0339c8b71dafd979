# class: network
# tries: send to a TCP port of the machine by TCP Fast Open, which needs no connect(2)
# stopped-by: namespace.net seccomp
# needs: tcp
# witness: tcp
# source: https://github.com/landlock-lsm/linux/issues/41

import errno, socket, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
host, port = given["tcp"].rsplit(":", 1)
try:
    peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # The kernel connects within sendto(2), past the hook of connect(2).
    peer.sendto(b"x", socket.MSG_FASTOPEN, (host, int(port)))
    peer.settimeout(1)
    reply = peer.recv(4096)
except OSError as error:
    print("STOPPED socket or sendto:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the port, which said", reply.decode(errors="replace").strip())
