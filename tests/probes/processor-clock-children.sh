# class: processor
# tries: use three times the processor time of the limit in short processes, none of which reaches a limit of its own
# stopped-by: cpu-clock
# limits: cpu_ms=250 wall_ms=20000

used() {
    # Ticks of this shell and of its ended children; the name before them may have spaces.
    read -r line < /proc/$$/stat
    set -- ${line##*) }
    echo $((${12} + ${13} + ${14} + ${15}))
}
while [ "$(used)" -lt 75 ]; do
    (number=0; while [ $number -lt 5000 ]; do number=$((number + 1)); done)
done
echo "REACHED $(used) ticks of processor time"
