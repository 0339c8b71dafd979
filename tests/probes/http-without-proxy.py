# class: network
# tries: fetch from a port of the machine as a program does that heeds no proxy variable
# stopped-by: namespace.net seccomp landlock.net
# needs: tcp
# witness: tcp
# source: https://github.com/anthropics/claude-code-action/issues/341
import errno, http.client, sys, urllib.error, urllib.request

given = dict(arg.split("=", 1) for arg in sys.argv[1:])
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    reply = direct.open("http://" + given["tcp"] + "/", timeout=1).read(4096).decode(errors="replace")
except http.client.HTTPException as error:
    # The listener speaks no HTTP: its word is in the complaint.
    reply = str(error)
except urllib.error.URLError as error:
    print("STOPPED connect:", errno.errorcode.get(getattr(error.reason, "errno", None), error.reason))
    sys.exit(1)
except OSError as error:
    print("STOPPED recv:", errno.errorcode.get(error.errno, error))
    sys.exit(1)
print("REACHED the port, which said", " ".join(reply.split()))
