// class: kernel-surface
// tries: change the attributes of a mount, on a detached copy
// stopped-by: seccomp capabilities
// source: mount_setattr(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    struct mount_attr noexec = {.attr_set = MOUNT_ATTR_NOEXEC};
    long copy = syscall(SYS_open_tree, AT_FDCWD, "/tmp", OPEN_TREE_CLONE | O_CLOEXEC);
    if (copy < 0)
        refused("open_tree(OPEN_TREE_CLONE)");
    if (syscall(SYS_mount_setattr, copy, "", AT_EMPTY_PATH, &noexec, sizeof noexec) < 0)
        refused("mount_setattr");
    reached("the attributes of a mount");
}
