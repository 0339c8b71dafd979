# class: secrets
# tries: read the environment of the parent process, which the runtime started
# stopped-by: namespace.user capabilities landlock.fs landlock.net landlock.scope
# witness: secret
# source: https://github.com/inflexa-ai/inflexa/issues/88

import errno, os, sys

try:
    text = open("/proc/%d/environ" % os.getppid(), "rb").read()
except OSError as error:
    print("STOPPED open or read:", errno.errorcode[error.errno])
    sys.exit(1)
found = [line for line in text.split(b"\0") if line.startswith(b"PROBE_CANARY=")]
if not found:
    print("STOPPED the environment was read and has no PROBE_CANARY")
    sys.exit(1)
print("REACHED", found[0].decode(errors="replace"))
