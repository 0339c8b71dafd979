// class: cgroup-escape
// tries: make the file system of the control groups, in which limits are written
// stopped-by: seccomp capabilities landlock.fs
// source: CVE-2022-0492, CDK mount-cgroup
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    long context = syscall(SYS_fsopen, "cgroup2", 0);
    if (context < 0)
        refused("fsopen(cgroup2)");
    if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        refused("fsconfig(cgroup2)");
    long groups = syscall(SYS_fsmount, context, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (groups < 0)
        refused("fsmount(cgroup2)");
    if (openat(groups, "cgroup.procs", O_RDONLY | O_CLOEXEC) < 0)
        refused("openat(cgroup.procs)");
    reached("the file system of the control groups");
}
