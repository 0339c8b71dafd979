# class: files
# tries: write to a file of the machine that everybody may write
# stopped-by: namespace.mount landlock.fs
# needs: target
# witness: target

for arg in "$@"; do
    case "$arg" in target=*) file=${arg#*=} ;; esac
done
# `[` first: without it a shell would make the file where a folder of that name can be written.
if [ -e "$file" ] && text=$( { echo written >> "$file"; } 2>&1); then
    echo "REACHED the file and wrote to it"
    exit 0
fi
echo "STOPPED open: ${text:-ENOENT}"
exit 1
