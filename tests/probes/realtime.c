// class: processor
// tries: run before all others, under a realtime policy
// stopped-by: namespace.user capabilities
// source: sched(7)
#define _GNU_SOURCE
#include <sched.h>

#include "probe.h"

int main(void)
{
    struct sched_param lowest = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR, &lowest) < 0)
        refused("sched_setscheduler(SCHED_RR)");
    reached("a realtime policy");
}
