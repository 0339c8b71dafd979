// class: kernel-surface
// tries: make a file system by the newer interface and attach it to a folder of its own
// stopped-by: seccomp capabilities landlock.fs
// source: move_mount(2), fsmount(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char dir[] = "/tmp/probe-XXXXXX";
    if (!mkdtemp(dir))
        broken("mkdtemp");
    const char *call = "fsopen";
    long context = syscall(SYS_fsopen, "tmpfs", 0), made = -1, attached = -1;
    if (context >= 0) {
        call = "fsconfig";
        made = syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    }
    if (made >= 0) {
        call = "fsmount";
        made = syscall(SYS_fsmount, context, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    }
    if (made >= 0) {
        call = "move_mount";
        attached = syscall(SYS_move_mount, made, "", AT_FDCWD, dir, MOVE_MOUNT_F_EMPTY_PATH);
    }
    int failed = attached < 0 ? errno : 0;
    if (!failed && syscall(SYS_umount2, dir, 2 /* MNT_DETACH */) < 0)
        broken("umount2");
    rmdir(dir);
    errno = failed;
    if (failed)
        refused(call);
    reached("a mount of its own");
}
