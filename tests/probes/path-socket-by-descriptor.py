# class: path-sockets
# tries: connect to a Unix socket of the machine by a descriptor of its folder, past the limit of a path's length
# stopped-by: namespace.mount
# needs: socket
# witness: socket

import errno, os, socket, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
folder, name = os.path.split(given["socket"])
try:
    # The folder is only named here (O_PATH), which Landlock does not look at.
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(1)
    peer.connect("/proc/self/fd/%d/%s" % (handle, name))
except OSError as error:
    print("STOPPED open, socket or connect:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the socket")
