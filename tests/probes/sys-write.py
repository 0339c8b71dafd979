# class: kernel-surface
# tries: open a setting of the machine in /sys for writing; nothing is written
# stopped-by: namespace.mount landlock.fs identity.unprivileged

import errno, os, sys

# Of these a kernel has at least one, of mode 0644.
names = ["kernel/uevent_helper", "kernel/mm/transparent_hugepage/enabled", "power/state", "kernel/mm/ksm/run"]
failed = set()
for name in names:
    try:
        os.close(os.open("/sys/" + name, os.O_WRONLY))
    except OSError as error:
        failed.add(errno.errorcode[error.errno])
        continue
    print("REACHED /sys/" + name + ", open for writing")
    sys.exit(0)
print("STOPPED open:", " ".join(sorted(failed)))
sys.exit(1)
