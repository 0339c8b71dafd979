// class: devices
// tries: make a node of the kernel's log and open it
// stopped-by: namespace.user capabilities landlock.fs mounts.nosuid-nodev
// source: mknod(2), CDK mount-disk
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char dir[] = "/tmp/probe-XXXXXX", path[64];
    if (!mkdtemp(dir))
        broken("mkdtemp");
    snprintf(path, sizeof path, "%s/kmsg", dir);
    const char *call = "mknod";
    int failed = mknod(path, S_IFCHR | 0600, makedev(1, 11)) < 0 ? errno : 0;
    if (!failed) {
        call = "open";
        failed = open(path, O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
    }
    unlink(path);
    rmdir(dir);
    errno = failed;
    if (failed)
        refused(call);
    reached("the device of the kernel's log");
}
