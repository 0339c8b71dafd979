# class: posture
# kind: posture
# tries: have a capability in any of the five sets
# stopped-by: capabilities
# source: CVE-2022-24769
sets=$(grep '^Cap' /proc/self/status | grep -v '[[:space:]]0000000000000000$')
if [ -n "$sets" ]; then
    echo "REACHED" $sets
    exit 0
fi
echo "STOPPED all five sets are empty"
exit 1
