# class: cgroup-escape
# tries: open a release agent, which the kernel starts as root on the machine, for writing; nothing is written
# stopped-by: namespace.mount landlock.fs identity.unprivileged
# source: CVE-2022-0492

import errno, os, sys

# Version 1 has one in the root of each hierarchy; a machine with version 2 alone has none.
if not any(line.split(":")[1] for line in open("/proc/self/cgroup")):
    print("NOT-APPLICABLE this machine has no hierarchy of version 1")
    sys.exit(3)
failed = set()
for line in open("/proc/self/mounts"):
    place, kind = line.split()[1:3]
    if kind == "cgroup":
        try:
            os.close(os.open(place + "/release_agent", os.O_WRONLY))
        except OSError as error:
            failed.add(errno.errorcode[error.errno])
            continue
        print("REACHED", place + "/release_agent", "open for writing")
        sys.exit(0)
print("STOPPED open:", " ".join(sorted(failed)) or "no such file system is mounted")
sys.exit(1)
