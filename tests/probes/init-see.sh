# class: init
# tries: see process 1 in /proc, with its name
# stopped-by: proc.masked

if text=$(cat /proc/1/comm 2>&1); then
    echo "REACHED process 1, which is $text"
    exit 0
fi
echo "STOPPED $text"
exit 1
