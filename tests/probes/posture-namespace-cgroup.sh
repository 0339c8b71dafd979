# class: posture
# kind: posture
# tries: see the path of the own group below the machine's root group
# stopped-by: namespace.cgroup
# source: cgroup_namespaces(7)

while IFS= read -r line; do
    case "$line" in
        *:/) ;;
        *) echo "REACHED $line"; exit 0 ;;
    esac
done < /proc/self/cgroup
echo "STOPPED every path of /proc/self/cgroup is /"
exit 1
