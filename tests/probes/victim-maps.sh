# class: processes
# tries: read where the memory of a process of the machine lies
# stopped-by: namespace.pid namespace.user capabilities landlock.fs landlock.net landlock.scope
# needs: victim
for arg in "$@"; do
    case "$arg" in victim=*) pid=${arg#*=} ;; esac
done
# The first read fails if the right is missing, or tells nothing.
text=$(head -n 1 "/proc/$pid/maps" 2>&1)
case "$text" in
    *-*" r"*) echo "REACHED $text"; exit 0 ;;
esac
echo "STOPPED $text"
exit 1
