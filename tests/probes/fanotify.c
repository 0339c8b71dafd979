// class: kernel-surface
// tries: open a group of file system events, of the kind that needs no capability
// stopped-by: seccomp
// source: fanotify_init(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/fanotify.h>

#include "probe.h"

int main(void)
{
    /* Linux 5.13; before it the kernel answers EPERM to all without CAP_SYS_ADMIN. */
    if (fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC, O_RDONLY) < 0)
        refused("fanotify_init");
    reached("a group of file system events");
}
