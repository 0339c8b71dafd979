# class: processes
# tries: list the descriptors and the working directory of a process of the machine
# stopped-by: namespace.pid namespace.user capabilities landlock.fs landlock.net landlock.scope
# needs: victim

import errno, os, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
folder = "/proc/" + given["victim"]
try:
    numbers = os.listdir(folder + "/fd")
    place = os.readlink(folder + "/cwd")
except OSError as error:
    print("STOPPED open or readlink:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED", len(numbers), "descriptors; it works in", place)
