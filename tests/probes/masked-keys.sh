# class: masked-paths
# tries: read the list of the kernel's keys
# stopped-by: proc.masked
# source: CVE-2025-31133

if [ ! -e /proc/keys ]; then
    echo "NOT-APPLICABLE the kernel has no key retention"
    exit 3
fi
# It may be empty, where no key is one's own; what covers it is a device.
if [ -f /proc/keys ] && text=$(cat /proc/keys 2>&1); then
    echo "REACHED /proc/keys:" $text
    exit 0
fi
echo "STOPPED ${text:-it is covered by a device}"
exit 1
