# class: processes
# tries: read the memory of a process of the machine through /proc
# stopped-by: namespace.pid namespace.user capabilities landlock.fs landlock.net landlock.scope
# needs: victim
# witness: secret

import errno, re, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    with open("/proc/" + given["victim"] + "/mem", "rb", buffering=0) as memory:
        memory.seek(int(given["victim-address"], 16))
        text = memory.read(256)
except OSError as error:
    print("STOPPED open or read:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED its memory, which holds", re.match(rb"[ -~]*", text)[0].decode())
