"""Submits a call over a Unix socket as whoever runs this: post.py SOCKET METHOD PATH < BODY. Prints status and body."""

import http.client
import socket
import sys


class Unix(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host_path)


path, method, target = sys.argv[1:4]
connection = Unix("localhost")
connection.host_path = path
connection.request(method, target, body=sys.stdin.buffer.read(), headers={"Content-Type": "application/json"})
response = connection.getresponse()
sys.stdout.buffer.write(f"{response.status} {response.getheader('content-type')}\n".encode() + response.read())
