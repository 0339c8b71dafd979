# class: process-count
# tries: have three times as many processes as the limit at once, by a shell
# stopped-by: cgroup.pids
# limits: pids=16

# In a shell of its own, which ends when it cannot fork.
started=$(
    for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 \
        25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48; do
        sleep 2 > /dev/null 2>&1 &
        echo $number
    done 2> /dev/null | tail -n 1
)
if [ "$started" = 48 ]; then
    echo "REACHED 48 processes"
    exit 0
fi
echo "STOPPED fork after $started"
exit 1
