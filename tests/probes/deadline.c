// class: processor
// tries: run before all others, under the deadline policy
// stopped-by: namespace.user capabilities
// source: sched(7), sched_setattr(2)
#define _GNU_SOURCE
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* The realtime policies can also be refused by a group that was given no time of theirs. */
    struct sched_attr attr = {.size = sizeof attr, .sched_policy = SCHED_DEADLINE, .sched_runtime = 1000000,
                              .sched_deadline = 100000000, .sched_period = 100000000};
    if (syscall(SYS_sched_setattr, 0, &attr, 0) < 0)
        refused("sched_setattr(SCHED_DEADLINE)");
    reached("the deadline policy");
}
