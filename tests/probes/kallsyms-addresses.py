# class: kernel-surface
# tries: read addresses of the kernel in /proc/kallsyms
# stopped-by: namespace.user capabilities
# source: proc_kallsyms(5)

import errno, sys

try:
    words = open("/proc/kallsyms").readline().split()
except OSError as error:
    if error.errno == errno.ENOENT:
        print("NOT-APPLICABLE the kernel has no such file")
        sys.exit(3)
    print("STOPPED open:", errno.errorcode[error.errno])
    sys.exit(1)
if int(words[0], 16) == 0:
    if open("/proc/sys/kernel/kptr_restrict").read().strip() == "2":
        print("NOT-APPLICABLE this machine shows addresses to nobody (kptr_restrict)")
        sys.exit(3)
    print("STOPPED all addresses read as 0")
    sys.exit(1)
print("REACHED", " ".join(words))
