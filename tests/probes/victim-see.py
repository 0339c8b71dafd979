# class: processes
# tries: see a process of the machine in /proc, with its command line
# stopped-by: namespace.pid
# needs: victim

import errno, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    line = open("/proc/" + given["victim"] + "/cmdline", "rb").read()
except OSError as error:
    print("STOPPED open:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the process:", line.replace(b"\0", b" ").decode(errors="replace").split("\n")[0].strip())
