# class: files
# tries: read a file that only the user may read who runs the instance, as /etc/shadow is root's
# stopped-by: namespace.mount identity.unprivileged
# needs: own-file
# witness: secret

import errno, sys

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
try:
    text = open(given["own-file"]).read().strip()
except OSError as error:
    print("STOPPED open:", errno.errorcode[error.errno])
    sys.exit(1)
print("REACHED the file, which holds", text)
