# class: files
# tries: make a file in /etc, and remove it
# stopped-by: root.readonly landlock.fs capabilities

name=/etc/probe-$$
if text=$( { : > "$name"; } 2>&1); then
    rm "$name"
    echo "REACHED /etc: made and removed $name"
    exit 0
fi
echo "STOPPED $text"
exit 1
