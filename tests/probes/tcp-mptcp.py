# class: network
# tries: connect to a TCP port of the machine with a multipath socket, which a rule for TCP may not cover
# stopped-by: namespace.net seccomp
# needs: tcp
# witness: tcp
# source: https://github.com/landlock-lsm/linux/issues/54
import errno, os, socket, sys

if not os.path.exists("/proc/sys/net/mptcp"):
    print("NOT-APPLICABLE the kernel has no MPTCP")
    sys.exit(3)
given = dict(arg.split("=", 1) for arg in sys.argv[1:])
host, port = given["tcp"].rsplit(":", 1)
try:
    # 262 is IPPROTO_MPTCP. A peer without it is spoken to in plain TCP.
    peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    peer.settimeout(1)
    peer.connect((host, int(port)))
    peer.sendall(b"x")
    reply = peer.recv(4096)
except OSError as error:
    print("STOPPED socket or connect:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the port, which said", reply.decode(errors="replace").strip())
