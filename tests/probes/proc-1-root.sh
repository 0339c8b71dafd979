# class: processes
# tries: read a file of the machine through the root of process 1
# stopped-by: namespace.pid namespace.user capabilities landlock.fs landlock.net landlock.scope
# needs: open-file
# witness: secret
# source: https://github.com/cdk-team/CDK
for arg in "$@"; do
    case "$arg" in open-file=*) file=${arg#*=} ;; esac
done
if text=$(cat "/proc/1/root$file" 2>&1); then
    echo "REACHED the file, which holds $text"
    exit 0
fi
echo "STOPPED $text"
exit 1
