// class: posture
// kind: posture
// tries: see whether Landlock is asked about a device node in the scratch, before capabilities are
// stopped-by: landlock.fs
// source: mknod(2), landlock(7) (LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define _GNU_SOURCE
#include <sys/stat.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char dir[] = "/tmp/probe-XXXXXX", path[64];
    if (!mkdtemp(dir))
        broken("mkdtemp");
    snprintf(path, sizeof path, "%s/node", dir);
    /* Landlock says EACCES, and only if it does not is CAP_MKNOD asked for: EPERM. Device 0:0 is no device. */
    int failed = mknod(path, S_IFBLK | 0600, 0) < 0 ? errno : 0;
    unlink(path);
    rmdir(dir);
    errno = failed;
    if (failed == EACCES)
        refused("mknod");
    reached(failed ? "the check of capabilities: Landlock does not restrict files" : "a node: nothing restricts files");
}
