// class: posture
// kind: posture
// tries: make a whiteout in the scratch, a device node that needs no capability and that only Landlock refuses
// stopped-by: landlock.fs
// source: mknod(2), landlock(7) (LANDLOCK_ACCESS_FS_MAKE_CHAR)
#define _GNU_SOURCE
#include <sys/stat.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char dir[] = "/tmp/probe-XXXXXX", path[64];
    if (!mkdtemp(dir))
        broken("mkdtemp");
    snprintf(path, sizeof path, "%s/whiteout", dir);
    /* Device 0:0, which everybody may make since Linux 5.8. */
    int failed = mknod(path, S_IFCHR | 0600, 0) < 0 ? errno : 0;
    unlink(path);
    rmdir(dir);
    errno = failed;
    if (failed)
        refused("mknod");
    reached("a whiteout: Landlock does not restrict files");
}
