// class: secrets
// tries: ask how much of the kernel's log is unread, which needs CAP_SYSLOG whatever kernel.dmesg_restrict says
// stopped-by: seccomp capabilities namespace.user
// source: syslog(2)
#define _GNU_SOURCE
#include <sys/klog.h>

#include "probe.h"

#define SIZE_UNREAD 9

int main(void)
{
    int unread = klogctl(SIZE_UNREAD, NULL, 0);
    if (unread < 0)
        refused("syslog");
    reached("the kernel's log (%d bytes unread)", unread);
}
