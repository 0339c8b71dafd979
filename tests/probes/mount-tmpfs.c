// class: kernel-surface
// tries: mount a file system over a folder of its own
// stopped-by: seccomp capabilities landlock.fs
// source: mount(2), CVE-2022-0185
#define _GNU_SOURCE
#include <sys/mount.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char dir[] = "/tmp/probe-XXXXXX";
    if (!mkdtemp(dir))
        broken("mkdtemp");
    int failed = mount("probe", dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=4k") < 0 ? errno : 0;
    if (!failed && umount2(dir, MNT_DETACH) < 0)
        broken("umount2");
    rmdir(dir);
    errno = failed;
    if (failed)
        refused("mount");
    reached("a mount of its own");
}
