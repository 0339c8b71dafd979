# class: posture
# kind: posture
# tries: make system calls without a filter
# stopped-by: seccomp
# source: seccomp(2)
value=$(sed -n 's/^Seccomp:[[:space:]]*//p' /proc/self/status)
if [ "$value" = "2" ]; then
    echo "STOPPED Seccomp is $value"
    exit 1
fi
echo "REACHED Seccomp is $value"
exit 0
