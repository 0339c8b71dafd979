# class: posture
# kind: posture
# tries: have a /proc that can be written
# stopped-by: proc.masked

import os, sys

if not os.statvfs("/proc").f_flag & os.ST_RDONLY:
    print("REACHED /proc is mounted without ro")
    sys.exit(0)
print("STOPPED /proc is ro")
sys.exit(1)
