# class: masked-paths
# tries: read the kernel's list of timers
# stopped-by: proc.masked identity.unprivileged
# source: CVE-2025-31133

import errno, os, sys

if not os.path.exists("/proc/timer_list"):
    print("NOT-APPLICABLE the kernel has no such file")
    sys.exit(3)
try:
    line = open("/proc/timer_list").readline().strip()
except OSError as error:
    print("STOPPED open or read:", errno.errorcode[error.errno])
    sys.exit(1)
if not line:
    print("STOPPED nothing in it")
    sys.exit(1)
print("REACHED", line)
