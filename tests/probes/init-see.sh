# class: init
# tries: see process 1 in /proc, with its command line
# stopped-by: proc.masked
if text=$(tr '\0' ' ' 2>&1 < /proc/1/cmdline); then
    echo "REACHED process 1: $text"
    exit 0
fi
# The words of the failed redirection are the shell's own.
echo "STOPPED open of /proc/1/cmdline fails"
exit 1
