// class: processor
// tries: raise its priority over that of others
// stopped-by: namespace.user capabilities
// source: setpriority(2)
#define _GNU_SOURCE
#include <sys/resource.h>

#include "probe.h"

int main(void)
{
    errno = 0;
    int now = getpriority(PRIO_PROCESS, 0);
    if (errno)
        broken("getpriority");
    if (setpriority(PRIO_PROCESS, 0, now - 1) < 0)
        refused("setpriority");
    reached("nice value %d", now - 1);
}
