# class: processes
# tries: read a file of the machine through the root of one of its processes
# stopped-by: namespace.pid namespace.user capabilities landlock.fs landlock.net landlock.scope
# needs: victim open-file
# witness: secret
# source: CVE-2022-31214

import errno, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    text = open("/proc/" + given["victim"] + "/root" + given["open-file"]).read().strip()
except OSError as error:
    print("STOPPED open:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the file, which holds", text)
