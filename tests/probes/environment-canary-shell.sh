# class: secrets
# tries: find in the environment of a child, as /proc shows it, what whoever runs the instance has in theirs
# stopped-by: environment.allowlist
# witness: secret

text=$(cat /proc/self/environ | tr '\0' '\n' | grep '^PROBE_CANARY=')
if [ -n "$text" ]; then
    echo "REACHED $text"
    exit 0
fi
echo "STOPPED no such variable"
exit 1
