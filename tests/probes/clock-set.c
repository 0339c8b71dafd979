// class: clock
// tries: set the time zone of the machine's clock, to one that there is not
// stopped-by: seccomp namespace.user capabilities
// source: settimeofday(2), isolate 2.2
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* More than 15 hours from Greenwich: EINVAL, after the question for CAP_SYS_TIME. */
    struct timezone nowhere = {.tz_minuteswest = 10000};
    if (syscall(SYS_settimeofday, NULL, &nowhere) < 0 && errno != EINVAL)
        refused("settimeofday");
    reached("the machine's clock (past CAP_SYS_TIME)");
}
