# class: network
# tries: find a way to the name server, or to the loopback's where none is named; nothing is sent
# stopped-by: namespace.net seccomp

import errno, socket, sys

server = "127.0.0.1"
try:
    for line in open("/etc/resolv.conf"):
        words = line.split()
        if words[:1] == ["nameserver"] and ":" not in words[1]:
            server = words[1]
            break
except OSError:
    pass
try:
    # Connecting a datagram socket looks for a route and sends nothing.
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.connect((server, 53))
except OSError as error:
    print("STOPPED socket or connect:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED a route to", server, "from", peer.getsockname()[0])
