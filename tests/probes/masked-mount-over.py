# class: masked-paths
# tries: come to a masked file of /proc around what covers it
# stopped-by: proc.masked
# source: CVE-2019-16884

import errno, os, sys

# The same file by other names: through the process, through its root, by a descriptor of the folder.
names = ["/proc/self/../interrupts", "/proc/self/root/proc/interrupts", "/proc/thread-self/../../../interrupts"]
failed = set()
for name in names:
    try:
        line = open(name).readline().strip()
    except OSError as error:
        failed.add(errno.errorcode[error.errno])
        continue
    if line:
        print("REACHED", name, line)
        sys.exit(0)
    failed.add("nothing in it")
try:
    folder = os.open("/proc", os.O_PATH)
    file = os.open("interrupts", os.O_RDONLY, dir_fd=folder)
    line = os.read(file, 40).decode().strip()
    if line:
        print("REACHED interrupts by a descriptor:", line)
        sys.exit(0)
except OSError as error:
    failed.add(errno.errorcode[error.errno])
print("STOPPED open:", " ".join(sorted(failed)))
sys.exit(1)
