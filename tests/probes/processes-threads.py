# class: process-count
# tries: have four times as many threads as the limit of processes at once
# stopped-by: cgroup.pids
# limits: pids=16

import sys, threading

go, count = threading.Event(), 0
try:
    for count in range(64):
        threading.Thread(target=go.wait, daemon=True).start()
except RuntimeError as error:
    # Python's word for EAGAIN of clone(2).
    print("STOPPED clone:", error, "after", count)
    go.set()
    sys.exit(1)
go.set()
print("REACHED", count + 1, "threads")
