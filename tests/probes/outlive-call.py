# class: outliving
# tries: leave a process behind that changes a file of the machine after the call
# stopped-by: namespace.pid cgroup.memory cgroup.cpu cgroup.pids namespace.mount landlock.fs
# needs: target
# witness: target
# source: https://github.com/opencontainers/runc/issues/3135
import errno, os, sys, time

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    # Before it is left alone: does the way lead anywhere?
    file = os.open(given["target"], os.O_WRONLY)
except OSError as error:
    print("STOPPED open:", errno.errorcode[error.errno])
    sys.exit(1)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        time.sleep(0.5)
        os.write(file, b"written\n")
    os._exit(0)
os.wait()
print("REACHED a process stays behind, which writes to the file in half a second")
