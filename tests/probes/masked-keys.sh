# class: masked-paths
# tries: read the list of the kernel's keys
# stopped-by: proc.masked
# source: CVE-2025-31133

if [ ! -e /proc/keys ]; then
    echo "NOT-APPLICABLE the kernel has no key retention"
    exit 3
fi
# What covers it may be a device that can be opened and holds nothing.
if text=$(cat /proc/keys 2>&1) && [ -n "$text" ]; then
    echo "REACHED /proc/keys:" $text
    exit 0
fi
echo "STOPPED ${text:-nothing in it}"
exit 1
