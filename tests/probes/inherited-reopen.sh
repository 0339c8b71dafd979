# class: descriptors
# tries: open again by /proc/self/fd what was inherited from the runtime
# stopped-by: fds.closed
# source: CVE-2016-9962
# The expansion lists the shell's own descriptors; /dev/stdin may be a script on 0, and 10 and more may be the shell's.
for link in /proc/$$/fd/*; do
    number=${link##*/}
    case "$number" in 0|1|2) continue ;; esac
    target=$(readlink "$link") || continue
    case "$target" in "/proc/$$/fd"*) continue ;; esac
    # A shell that runs a script by name keeps it open: that is not inherited.
    [ "$target" = "$(readlink -f "$0" 2> /dev/null)" ] && continue
    echo "REACHED $number, which is $target"
    exit 0
done
echo "STOPPED nothing but 0, 1 and 2 is open"
exit 1
