# class: network
# tries: see the machine's listening ports in /proc/net/tcp
# stopped-by: namespace.net
# needs: tcp

for arg in "$@"; do
    case "$arg" in tcp=*) port=${arg##*:} ;; esac
done
hex=$(printf '%04X' "$port")
# A listener has state 0A.
if grep -q ": 0100007F:$hex 00000000:0000 0A " /proc/net/tcp; then
    echo "REACHED the line of port $port in /proc/net/tcp"
    exit 0
fi
echo "STOPPED /proc/net/tcp has $(($(wc -l < /proc/net/tcp) - 1)) lines, none of them of port $port"
exit 1
