# class: masked-paths
# tries: read the kernel's memory as a core file
# stopped-by: proc.masked namespace.user capabilities
# source: CVE-2025-31133

import errno, os, sys

if not os.path.exists("/proc/kcore"):
    print("NOT-APPLICABLE the kernel has no such file")
    sys.exit(3)
try:
    magic = open("/proc/kcore", "rb", buffering=0).read(4)
except OSError as error:
    print("STOPPED open or read:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED /proc/kcore, which begins with", magic)
