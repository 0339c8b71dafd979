# class: files
# tries: read a file of the machine by going up from the root, by path, by /proc/self/root and by the working directory
# stopped-by: namespace.mount
# needs: open-file
# witness: secret
# source: CVE-2024-21626

import errno, os, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
path = given["open-file"].lstrip("/")
failed = set()
for top in ["/" + "../" * 40, "/proc/self/root/" + "../" * 40, "/proc/self/cwd/" + "../" * 40]:
    try:
        text = open(top + path).read().strip()
    except OSError as error:
        failed.add(errno.errorcode[error.errno])
        continue
    print("REACHED the file from", top[:18], "which holds", text)
    sys.exit(0)
print("STOPPED open:", " ".join(sorted(failed)))
sys.exit(1)
