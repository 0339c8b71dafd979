# class: posture
# kind: posture
# tries: find folders in the root that only a whole machine has
# stopped-by: namespace.mount

found=
for name in root home var sys run; do
    if [ -e /$name ]; then found="$found /$name"; fi
done
if [ -n "$found" ]; then
    echo "REACHED$found"
    exit 0
fi
echo "STOPPED none of them is there"
exit 1
