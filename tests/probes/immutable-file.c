// class: disk
// tries: make a file that nobody can remove
// stopped-by: namespace.user capabilities
// source: ioctl_iflags(2), llxprt-code 3449 (folders that cannot be removed)
#define _GNU_SOURCE
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char path[] = "/tmp/probe-XXXXXX";
    int fd = mkstemp(path), flags;
    if (fd < 0)
        broken("mkstemp");
    const char *call = "ioctl(FS_IOC_GETFLAGS)";
    int failed = ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 ? errno : 0;
    if (!failed) {
        int immutable = flags | FS_IMMUTABLE_FL;
        call = "ioctl(FS_IOC_SETFLAGS)";
        failed = ioctl(fd, FS_IOC_SETFLAGS, &immutable) < 0 ? errno : 0;
        if (!failed && ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0)
            broken("ioctl(FS_IOC_SETFLAGS)");
    }
    unlink(path);
    if (failed == ENOTTY || failed == EOPNOTSUPP)
        not_applicable("the file system of /tmp has no such flag");
    errno = failed;
    if (failed)
        refused(call);
    reached("a file that nobody can remove");
}
