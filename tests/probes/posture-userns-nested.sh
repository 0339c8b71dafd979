# class: posture
# kind: posture
# tries: be allowed user namespaces of one's own
# stopped-by: userns.nested
# source: CVE-2022-0185

limit=$(cat /proc/sys/user/max_user_namespaces)
if [ "$limit" = 0 ]; then
    echo "STOPPED max_user_namespaces is 0"
    exit 1
fi
echo "REACHED max_user_namespaces is $limit"
exit 0
