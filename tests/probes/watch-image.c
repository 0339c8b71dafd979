// class: covert
// tries: watch which programs of the host others open
// stopped-by: seccomp
// source: inotify(7), isolate 2.6
#define _GNU_SOURCE
#include <sys/inotify.h>

#include "probe.h"

int main(void)
{
    int fd = inotify_init1(IN_CLOEXEC);
    if (fd < 0)
        refused("inotify_init1");
    if (inotify_add_watch(fd, "/usr/bin", IN_OPEN) < 0)
        refused("inotify_add_watch");
    reached("a watch on /usr/bin");
}
