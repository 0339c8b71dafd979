# class: posture
# kind: posture
# tries: have the right to send a signal to process 1, which Landlock does not rule; none is sent
# stopped-by: landlock.scope capabilities
# source: landlock(7)

import errno, os, sys

try:
    # Signal 0 asks for the right alone (kill(2)).
    os.kill(1, 0)
except OSError as error:
    print("STOPPED kill:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the right to send a signal to process 1")
