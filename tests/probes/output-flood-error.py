# class: output
# tries: print eight times what is allowed to standard error
# stopped-by: output.cap
# limits: output_limit_bytes=65536

import sys

for _ in range(8):
    sys.stderr.write(("x" * 127 + "\n") * 512)
    sys.stderr.flush()
print("REACHED 512 KiB of output")
