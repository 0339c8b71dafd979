# class: posture
# kind: posture
# tries: have more than single ids mapped in the own user namespace
# stopped-by: namespace.user
# source: user_namespaces(7)

while read -r inside outside count; do
    if [ "$count" -gt 1 ]; then
        echo "REACHED $count ids from $outside"
        exit 0
    fi
done < /proc/self/uid_map
echo "STOPPED each line of uid_map is of one id"
exit 1
