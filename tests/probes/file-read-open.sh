# class: files
# tries: read a file of the machine that everybody may read
# stopped-by: namespace.mount
# needs: open-file
# witness: secret

for arg in "$@"; do
    case "$arg" in open-file=*) file=${arg#*=} ;; esac
done
if text=$(cat "$file" 2>&1); then
    echo "REACHED the file, which holds $text"
    exit 0
fi
echo "STOPPED $text"
exit 1
