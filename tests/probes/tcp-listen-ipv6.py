# class: network
# tries: listen on a TCP port of the machine's IPv6 loopback
# stopped-by: namespace.net seccomp landlock.net

import errno, os, socket, sys

if not os.path.exists("/proc/net/if_inet6"):
    print("NOT-APPLICABLE the kernel has no IPv6")
    sys.exit(3)
try:
    server = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    # Where the loopback is down the address does not exist, and bind fails.
    server.bind(("::1", 0))
    server.listen(1)
except OSError as error:
    print("STOPPED socket, bind or listen:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the port", server.getsockname()[1])
