# class: runtime-binary
# tries: open the program of the parent process, which is the runtime's, for writing; nothing is written
# stopped-by: namespace.user capabilities landlock.fs landlock.net landlock.scope
# source: CVE-2019-5736

import errno, os, sys

try:
    read = os.open("/proc/%d/exe" % os.getppid(), os.O_RDONLY)
except OSError as error:
    print("STOPPED open of the parent's exe:", errno.errorcode[error.errno])
    sys.exit(1)
name = os.readlink("/proc/self/fd/%d" % read)
try:
    os.close(os.open("/proc/self/fd/%d" % read, os.O_WRONLY))
except OSError as error:
    # Busy only as long as it runs, which is when the attack waits: permission was given.
    if error.errno != errno.ETXTBSY:
        print("STOPPED opening it again for writing:", errno.errorcode[error.errno])
        sys.exit(1)
print("REACHED", name)
