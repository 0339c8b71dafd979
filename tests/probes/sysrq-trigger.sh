# class: sysctl
# tries: open /proc/sysrq-trigger for writing; nothing is written
# stopped-by: proc.masked landlock.fs identity.unprivileged
# source: CVE-2025-31133

if ! grep -q ' sysrq_enabled$\| write_sysrq_trigger$' /proc/kallsyms; then
    echo "NOT-APPLICABLE the kernel has no such file"
    exit 3
fi
if text=$( { : >> /proc/sysrq-trigger; } 2>&1); then
    echo "REACHED /proc/sysrq-trigger, open for writing"
    exit 0
fi
echo "STOPPED $text"
exit 1
