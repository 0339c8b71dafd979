#!/usr/bin/env python3
"""Compares, in one run, what starting a program costs in three ways:

    call          POST /v1/calls over the Unix socket, one connection kept, each call with a cell of its own,
                  a signed intent before and a signed outcome after
    bwrap         bubblewrap with the nearest flags: user, pid, net, ipc, uts and cgroup namespaces, read-only /usr, own
                  /proc and /dev, a tmpfs; no cgroup limits, no seccomp filter, no Landlock, no receipt
    fork+exec     the same static program by itself

and prints the median of each and its ratio to fork+exec. The three take turns, so that a busy moment of the machine
meets all of them. Builds the release binary and the program; needs root, gcc and bwrap.

    tests/compare-start.py [ROUNDS]
"""

import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOTHING = os.path.join(ROOT, "tests/programs/does_nothing.c")


class Unix(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def spawn(argv):
    """fork (or vfork), exec and wait, without anything of subprocess around it."""
    pid = os.posix_spawn(argv[0], argv, {})
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 0, (argv, status)


def caller(connection, program):
    number = 0

    def call():
        nonlocal number
        number += 1
        body = json.dumps({
            "call_id": f"compare-{os.getpid()}-{number}",
            "tool": "exec",
            "args": {"argv": ["/programs/nothing"]},
            "mounts": [{"host": os.path.dirname(program), "inside": "/programs", "mode": "ro"}],
        })
        connection.request("POST", "/v1/calls", body, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        assert answer["verdict"] == {"cause": "exited", "exit_code": 0}, answer

    return call


def bwrap(program):
    line = [shutil.which("bwrap"), "--unshare-all", "--uid", "65534", "--gid", "65534", "--die-with-parent",
            "--new-session", "--cap-drop", "ALL", "--clearenv", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin",
            "/bin", "--symlink", "usr/sbin", "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
            "/lib64", "--proc", "/proc", "--dev", "/dev", "--size", str(64 << 20), "--tmpfs", "/tmp", "--ro-bind",
            os.path.dirname(program), "/programs", "--chdir", "/tmp", "/programs/nothing"]
    return lambda: spawn(line)


def wait_for(socket_path, serve):
    end = time.monotonic() + 20
    while time.monotonic() < end and serve.poll() is None:
        try:
            connection = Unix(socket_path)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return connection
        except OSError:
            time.sleep(0.02)
    sys.exit("serve does not come up")


def compare(work, rounds):
    program = os.path.join(work, "programs/nothing")
    os.mkdir(os.path.dirname(program))
    subprocess.run(["gcc", "-O1", "-static", "-o", program, NOTHING], check=True)
    socket_path = os.path.join(work, "s")
    binary = os.path.join(ROOT, "target/release/toolcell")
    with open(os.path.join(work, "log"), "wb") as log:
        serve = subprocess.Popen(
            [binary, "serve", "--socket", socket_path, "--state", os.path.join(work, "state")],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        connection = wait_for(socket_path, serve)
        ways = {
            "call": caller(connection, program),
            "bwrap": bwrap(program),
            "fork+exec": lambda: spawn([program]),
        }
        for way in ways.values():
            for _ in range(5):
                way()
        times = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                times[name].append(timed(way))
    finally:
        serve.terminate()
        serve.wait(20)
    return times


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", "-p", "toolcell-cli"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix="toolcell-compare-", dir="/var/tmp") as work:
        os.chmod(work, 0o755)
        times = compare(work, rounds)
    base = statistics.median(times["fork+exec"])
    print(f"{'':12}{'median':>10}{'p95':>10}{'ratio to fork+exec':>22}   ({rounds} rounds, one connection kept)")
    for name, taken in times.items():
        p95 = sorted(taken)[int(len(taken) * 0.95)]
        median = statistics.median(taken)
        print(f"{name:12}{median * 1000:8.2f}ms{p95 * 1000:8.2f}ms{median / base:22.1f}")
    ratio = statistics.median(times["call"]) / statistics.median(times["bwrap"])
    print(f"a call takes {ratio:.2f} times as long as bwrap")


if __name__ == "__main__":
    main()
