# class: privilege
# tries: run a set-uid program of the machine and have it run as another user
# stopped-by: no-new-privs mounts.nosuid-nodev namespace.user
# source: CVE-2021-4034

import os, stat, sys, time

paths = ["/usr/bin/" + name for name in ("su", "mount", "passwd", "newgrp", "sudo", "chsh")]
# Of one that cannot be read the kernel hides the process as well.
wanted = stat.S_ISUID | stat.S_IROTH
programs = [path for path in paths if os.path.exists(path) and os.stat(path).st_mode & wanted == wanted]
if not programs:
    print("NOT-APPLICABLE this machine has no set-uid program of those names")
    sys.exit(3)
# Its output goes to a pipe that is full, so that it waits there while it is looked at.
read, write = os.pipe()
os.set_blocking(write, False)
try:
    while True:
        os.write(write, b"x" * 4096)
except BlockingIOError:
    os.set_blocking(write, True)
child = os.fork()
if child == 0:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    os.dup2(write, 1)
    os.dup2(write, 2)
    os.execv(programs[0], [programs[0], "--help"])
time.sleep(0.5)
try:
    ids = [line.split()[1:] for line in open("/proc/%d/status" % child) if line.startswith("Uid:")][0]
except FileNotFoundError:
    # Our own child, still there and hidden from us: it is not ours any more.
    ids = ["hidden", "hidden"]
# It ends when nobody reads any more.
os.close(read)
os.waitpid(child, 0)
if ids[0] != ids[1] or ids[0] == "hidden":
    print("REACHED", programs[0], "with real and effective user", *ids[:2])
    sys.exit(0)
print("STOPPED", programs[0], "ran as user", ids[1])
sys.exit(1)
