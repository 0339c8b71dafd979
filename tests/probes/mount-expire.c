// class: kernel-surface
// tries: take off the mount of /proc, by a first mark that it expires, which alone does nothing
// stopped-by: seccomp capabilities landlock.fs
// source: umount(2)
#define _GNU_SOURCE
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* A mount that was not used since an earlier mark would go: so it is used. */
    struct stat used;
    if (stat("/proc/self", &used) < 0)
        broken("/proc/self");
    if (umount2("/proc", MNT_EXPIRE) < 0 && errno != EAGAIN && errno != EBUSY)
        refused("umount2");
    if (stat("/proc/self", &used) < 0)
        broken("/proc/self");
    reached("the mount of /proc");
}
