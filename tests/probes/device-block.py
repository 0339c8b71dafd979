# class: devices
# tries: open a disk of the machine for reading; nothing is read
# stopped-by: dev.minimal identity.unprivileged
# source: https://github.com/cdk-team/CDK (mount-disk)

import errno, os, sys

names = ["/dev/" + line.split()[3] for line in open("/proc/partitions").read().splitlines()[2:]]
# A loop device without a file has no line there.
if any(line.split()[1:] == ["loop"] for line in open("/proc/devices")):
    names.append("/dev/loop0")
if not names:
    print("NOT-APPLICABLE this machine has no disk")
    sys.exit(3)
failed = set()
for name in names:
    try:
        os.close(os.open(name, os.O_RDONLY))
    except OSError as error:
        failed.add(errno.errorcode[error.errno])
        continue
    print("REACHED", name, "open for reading")
    sys.exit(0)
print("STOPPED open of", " ".join(names) + ":", " ".join(sorted(failed)))
sys.exit(1)
