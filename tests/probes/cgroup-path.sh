# class: cgroup-escape
# tries: read where its group lies among the machine's, which names the runner's instance and counts its cells
# stopped-by: namespace.cgroup
# source: cgroup_namespaces(7)

# A line is number:controllers:path; at the top of what it may see the path is a bare slash.
path=$(cut -d : -f 3 /proc/self/cgroup | grep -v '^/$' | head -n 1)
if [ -n "$path" ]; then
    echo "REACHED $path"
    exit 0
fi
echo "STOPPED every group is shown as /"
exit 1
