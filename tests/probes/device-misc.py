# class: devices
# tries: open one of the devices behind which large parts of the kernel lie
# stopped-by: dev.minimal landlock.fs identity.unprivileged

import errno, os, sys

# Misc devices have major number 10; which this kernel has is in /proc/misc.
known = {"fuse": "fuse", "tun": "net/tun", "kvm": "kvm", "vsock": "vsock", "userfaultfd": "userfaultfd",
         "loop-control": "loop-control"}
names = ["/dev/" + known[line.split()[1]] for line in open("/proc/misc") if line.split()[1] in known]
if not names:
    print("NOT-APPLICABLE the kernel has none of", " ".join(known))
    sys.exit(3)
failed = set()
for name in names:
    try:
        # What this machine opens to everybody is passed over: the user's id is to make a difference.
        if os.stat(name).st_mode & 0o006:
            continue
        os.close(os.open(name, os.O_RDWR))
    except OSError as error:
        failed.add(errno.errorcode[error.errno])
        continue
    print("REACHED", name, "open")
    sys.exit(0)
print("STOPPED open of", " ".join(names) + ":", " ".join(sorted(failed)))
sys.exit(1)
