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
    direct.open("http://" + given["tcp"] + "/", timeout=1)
except urllib.error.URLError as error:
    # Of these are all errors before the request is sent.
    print("STOPPED socket or connect:", errno.errorcode.get(getattr(error.reason, "errno", None), error.reason))
    sys.exit(1)
except (http.client.HTTPException, OSError):
    # The listener speaks no HTTP.
    pass
print("REACHED the port, which took the request")
