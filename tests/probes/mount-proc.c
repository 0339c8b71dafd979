// class: masked-paths
// tries: make a procfs of its own, and open what is covered in the one that is shown
// stopped-by: seccomp capabilities landlock.fs
// source: runc 1658, CVE-2025-52881, user_namespaces(7)
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    long context = syscall(SYS_fsopen, "proc", 0);
    if (context < 0)
        refused("fsopen(proc)");
    if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        refused("fsconfig(proc)");
    /* In a user namespace the kernel gives no more than is shown already, but looks at locked mounts only: a cover that
     * the namespace made itself is none. */
    long proc = syscall(SYS_fsmount, context, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (proc < 0)
        refused("fsmount(proc)");
    if (openat(proc, "interrupts", O_RDONLY | O_CLOEXEC) < 0)
        refused("openat(interrupts)");
    reached("interrupts, in a procfs of its own");
}
