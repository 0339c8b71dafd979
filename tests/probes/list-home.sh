# class: files
# tries: list the homes of the machine's users
# stopped-by: namespace.mount

if names=$(ls /home 2>&1); then
    echo "REACHED /home, which has" $names
    exit 0
fi
echo "STOPPED $names"
exit 1
