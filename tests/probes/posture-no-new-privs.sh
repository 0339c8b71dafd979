# class: posture
# kind: posture
# tries: be able to gain privileges by exec
# stopped-by: no-new-privs
# source: prctl(2)
value=$(sed -n 's/^NoNewPrivs:[[:space:]]*//p' /proc/self/status)
if [ "$value" = "1" ]; then
    echo "STOPPED NoNewPrivs is $value"
    exit 1
fi
echo "REACHED NoNewPrivs is $value"
exit 0
