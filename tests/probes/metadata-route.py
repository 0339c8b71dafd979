# class: network
# tries: find a way to the address where clouds answer with credentials; nothing is sent
# stopped-by: namespace.net seccomp
# source: https://github.com/cdk-team/CDK (metadata evaluation)

import errno, socket, sys

try:
    # Connecting a datagram socket looks for a route and sends nothing.
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.connect(("169.254.169.254", 80))
except OSError as error:
    # A machine that has addresses and no way there is not what this is about; a sealed cell has no address at all.
    if error.errno == errno.ENETUNREACH and "LOCAL" in open("/proc/net/fib_trie").read():
        print("NOT-APPLICABLE this machine has no route there")
        sys.exit(3)
    print("STOPPED socket or connect:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED a route from", peer.getsockname()[0])
