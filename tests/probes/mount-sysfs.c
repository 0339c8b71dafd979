// class: masked-paths
// tries: make a sysfs of its own
// stopped-by: seccomp capabilities namespace.user
// source: user_namespaces(7), sysfs(5)
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    long context = syscall(SYS_fsopen, "sysfs", 0);
    if (context < 0)
        refused("fsopen(sysfs)");
    if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        refused("fsconfig(sysfs)");
    /* In a user namespace the kernel gives none where none is shown. */
    long sysfs = syscall(SYS_fsmount, context, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (sysfs < 0)
        refused("fsmount(sysfs)");
    reached("a sysfs of its own");
}
