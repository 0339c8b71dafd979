# class: kernel-surface
# tries: list the machine's devices in /sys
# stopped-by: namespace.mount

if names=$(ls /sys/class/net 2>&1); then
    echo "REACHED /sys/class/net, which has" $names
    exit 0
fi
echo "STOPPED $names"
exit 1
