# class: cgroup-escape
# tries: open the list of a group's processes for writing, as to leave the own group; nothing is written
# stopped-by: namespace.mount landlock.fs identity.unprivileged
# source: https://github.com/cdk-team/CDK (rewrite-cgroup-devices)

import errno, os, sys

# The root of each hierarchy and the groups right below it: not every group has every file.
failed = set()
for line in open("/proc/self/mounts"):
    place, kind = line.split()[1:3]
    if kind not in ("cgroup", "cgroup2"):
        continue
    try:
        groups = [place] + [entry.path for entry in os.scandir(place) if entry.is_dir()]
    except OSError as error:
        failed.add(errno.errorcode[error.errno])
        continue
    for group in groups:
        for name in ("cgroup.procs",):
            try:
                os.close(os.open(os.path.join(group, name), os.O_WRONLY))
            except FileNotFoundError:
                continue
            except OSError as error:
                failed.add(errno.errorcode[error.errno])
                continue
            print("REACHED", os.path.join(group, name), "open for writing")
            sys.exit(0)
print("STOPPED open:", " ".join(sorted(failed)) or "no cgroup file system is mounted")
sys.exit(1)
