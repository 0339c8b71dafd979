# class: processes
# tries: read the environment of a process of the machine
# stopped-by: namespace.pid namespace.user capabilities
# needs: victim
# witness: secret
# source: CVE-2016-9962

import errno, os, sys

# Since then CAP_PERFMON is enough to read it, of which Landlock is not asked; before, Landlock stops it as well.
if tuple(int(word) for word in os.uname().release.split("-")[0].split(".")[:2]) < (6, 15):
    print("NOT-APPLICABLE this kernel is older than 6.15 and asks as for the memory")
    sys.exit(3)

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    text = open("/proc/" + given["victim"] + "/environ", "rb").read()
except OSError as error:
    print("STOPPED open or read:", errno.errorcode[error.errno])
    sys.exit(1)
found = [line for line in text.split(b"\0") if line.startswith(b"PROBE_SECRET=")]
if not found:
    print("STOPPED the environment was read and has no PROBE_SECRET")
    sys.exit(1)
print("REACHED", found[0].decode(errors="replace"))
