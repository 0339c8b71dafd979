# class: masked-paths
# tries: read how often the machine was interrupted, which tells of keystrokes and of neighbours
# stopped-by: proc.masked
# source: CVE-2025-31133

# What covers it may be a device that can be opened and holds nothing.
if text=$(head -n 1 /proc/interrupts 2>&1) && [ -n "$text" ]; then
    echo "REACHED /proc/interrupts:" $text
    exit 0
fi
echo "STOPPED ${text:-nothing in it}"
exit 1
