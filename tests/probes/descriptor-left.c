// class: descriptors
// tries: find a descriptor beside 0, 1 and 2 that it was started with
// stopped-by: fds.closed
// source: CVE-2024-21626, CVE-2016-9962, runc TestFdLeaks
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "probe.h"

/* A sparse table of more than this many is nothing that anybody leaves by mistake. */
#define HIGHEST 65536

int main(void)
{
    for (int fd = 3; fd < HIGHEST; fd++) {
        char path[64], name[256] = "";
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof name - 1) < 0)
            snprintf(name, sizeof name, "unknown");
        reached("descriptor %d, which is %s", fd, name);
    }
    stopped("fcntl(F_GETFD): none is open");
}
