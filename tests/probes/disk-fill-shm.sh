# class: disk
# tries: have more in /tmp and /dev/shm together than their quota
# stopped-by: tmp.quota
# limits: tmp_bytes=4194304

one=/tmp/probe-$$ two=/dev/shm/probe-$$
text=$(dd if=/dev/zero of=$one bs=65536 count=48 2>&1 && dd if=/dev/zero of=$two bs=65536 count=48 2>&1)
status=$?
rm -f $one $two
if [ $status = 0 ]; then
    echo "REACHED 3 MiB in each of /tmp and /dev/shm"
    exit 0
fi
echo "STOPPED $(echo "$text" | grep -i 'space\|denied\|such file' | head -n 1)"
exit 1
