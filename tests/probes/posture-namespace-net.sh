# class: posture
# kind: posture
# tries: have an address, which needs an interface that is up
# stopped-by: namespace.net
# source: network_namespaces(7)

if grep -q LOCAL /proc/net/fib_trie; then
    echo "REACHED addresses:" $(grep -B 1 LOCAL /proc/net/fib_trie | grep -o '[0-9.]*$' | sort -u)
    exit 0
fi
echo "STOPPED /proc/net/fib_trie has no address"
exit 1
