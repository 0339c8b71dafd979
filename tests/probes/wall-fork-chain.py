# class: outliving
# tries: be past the limit of the wall clock in another process each millisecond
# stopped-by: wall-clock
# limits: wall_ms=600
# source: https://github.com/opencontainers/runc/issues/3135

import os, sys, time

# Each process makes the next and ends, so that a list of processes is old when it is read.
read, write = os.pipe()
began = time.monotonic()
if os.fork() == 0:
    os.close(read)
    os.setsid()
    while time.monotonic() - began < 1.5:
        if os.fork():
            os._exit(0)
        time.sleep(0.001)
    os.write(write, b"1")
    os._exit(0)
os.close(write)
# The end of the pipe is closed by the last one.
if os.read(read, 1) == b"1":
    print("REACHED a time more than twice the limit")
    sys.exit(0)
print("STOPPED the chain ended before")
sys.exit(1)
