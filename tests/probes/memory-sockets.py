# class: memory
# tries: use twice the memory of the limit in what lies unread in sockets and pipes
# stopped-by: cgroup.memory
# limits: memory_bytes=25165824 open_files=1024
# source: CVE-2016-2847

import errno, fcntl, os, socket, sys

total, kept, block = 0, [], b"x" * 65536
try:
    for _ in range(240):
        pair = socket.socketpair()
        read, write = os.pipe()
        kept.append((pair, read))
        # 1031 is F_SETPIPE_SZ. A user has 64 MiB of pipes; beyond that it fails and the pipe stays small.
        try:
            fcntl.fcntl(write, 1031, 1 << 17)
        except OSError:
            pass
        for end in (pair[0].fileno(), write):
            os.set_blocking(end, False)
            try:
                while True:
                    total += os.write(end, block)
            except BlockingIOError:
                pass
except OSError as error:
    print("STOPPED socketpair, pipe or write:", errno.errorcode[error.errno], "at", total >> 20, "MiB")
    sys.exit(1)
if total < 48 << 20:
    print("STOPPED no more than", total >> 20, "MiB were taken")
    sys.exit(1)
print("REACHED", total >> 20, "MiB in sockets and pipes")
