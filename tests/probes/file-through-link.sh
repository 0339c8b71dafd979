# class: files
# tries: read a file of the machine through a symbolic link made in /tmp
# stopped-by: namespace.mount
# needs: open-file
# witness: secret
# source: CVE-2024-28185

for arg in "$@"; do
    case "$arg" in open-file=*) file=${arg#*=} ;; esac
done
link=/tmp/probe-link-$$
ln -s "$file" "$link"
text=$(cat "$link" 2>&1)
status=$?
rm "$link"
if [ $status = 0 ]; then
    echo "REACHED the file, which holds $text"
    exit 0
fi
echo "STOPPED $text"
exit 1
