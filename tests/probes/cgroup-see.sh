# class: cgroup-escape
# tries: find a mounted cgroup file system and list its groups
# stopped-by: namespace.mount

place=$(grep -E '^[^ ]+ [^ ]+ cgroup2? ' /proc/self/mounts | head -n 1 | cut -d ' ' -f 2)
if [ -n "$place" ] && names=$(ls "$place" 2>&1); then
    echo "REACHED $place, which has $(echo "$names" | wc -l) entries"
    exit 0
fi
echo "STOPPED no cgroup file system is mounted"
exit 1
