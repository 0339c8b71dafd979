# class: posture
# kind: posture
# tries: have other limits for core files and for queued signals than a cell has
# stopped-by: rlimits
# source: core(5)
core=$(sed -n 's/^Max core file size  *\([^ ]*\)  *\([^ ]*\) .*/\1 \2/p' /proc/self/limits)
signals=$(sed -n 's/^Max pending signals  *\([^ ]*\)  *\([^ ]*\) .*/\1 \2/p' /proc/self/limits)
if [ "$core" = "1 1" ] && [ "$signals" = "1024 1024" ]; then
    echo "STOPPED core files $core, pending signals $signals"
    exit 1
fi
echo "REACHED core files $core, pending signals $signals"
exit 0
