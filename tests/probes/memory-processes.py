# class: memory
# tries: use four times the memory of the limit, spread over eight processes
# stopped-by: cgroup.memory
# limits: memory_bytes=67108864

import os, sys, time

read, write = os.pipe()
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        block = b"x" * (32 << 20)
        os.write(write, b"1")
        time.sleep(1)
        os._exit(len(block) & 1)
    children.append(child)
os.close(write)
# All have it at once, or one was killed and its end of the pipe closed.
count = 0
while os.read(read, 1):
    count += 1
statuses = [os.waitpid(child, 0)[1] for child in children]
if count == 8 and not any(statuses):
    print("REACHED", 8 * 32, "MiB of memory in 8 processes")
    sys.exit(0)
print("STOPPED", sum(1 for status in statuses if os.WIFSIGNALED(status)), "of 8 processes were killed")
sys.exit(1)
