"""Ends the daemon behind a socket and waits for it: stop.py SOCKET. The kernel says which process listens."""

import os
import select
import signal
import socket
import struct
import sys

link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
pid = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
handle = os.pidfd_open(pid)
signal.pidfd_send_signal(handle, signal.SIGTERM)
if not select.select([handle], [], [], 20)[0]:
    sys.exit(f"process {pid} does not end")
