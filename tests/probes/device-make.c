// class: devices
// tries: make a node of a character device
// stopped-by: namespace.user capabilities landlock.fs
// source: mknod(2)
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char dir[] = "/tmp/probe-XXXXXX", path[64];
    if (!mkdtemp(dir))
        broken("mkdtemp");
    snprintf(path, sizeof path, "%s/null", dir);
    int failed = mknod(path, S_IFCHR | 0600, makedev(1, 3)) < 0 ? errno : 0;
    unlink(path);
    rmdir(dir);
    errno = failed;
    if (failed)
        refused("mknod");
    reached("a node of a character device");
}
