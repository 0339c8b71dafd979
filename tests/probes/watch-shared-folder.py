# class: covert
# tries: be told when somebody else reads a folder that all cells share (F_NOTIFY)
# stopped-by: seccomp
# source: isolate 2.4 (i-node operations)
import errno, fcntl, os, signal, sys

signal.signal(signal.SIGIO, signal.SIG_IGN)
try:
    fcntl.fcntl(os.open("/usr/bin", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS)
except OSError as error:
    print("STOPPED fcntl:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED a watch on /usr/bin")
