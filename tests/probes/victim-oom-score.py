# class: processes
# tries: set the out-of-memory score of a process of the machine, in the machine's /proc, to what it is
# stopped-by: namespace.mount landlock.fs identity.unprivileged
# needs: victim

import errno, os, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
name = "/proc/" + given["victim"] + "/oom_score_adj"
try:
    value = open(name).read()
    file = os.open(name, os.O_WRONLY)
    os.write(file, value.encode())
except OSError as error:
    print("STOPPED open or write:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the score, which is", value.strip())
