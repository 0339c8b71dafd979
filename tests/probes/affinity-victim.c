// class: processes
// tries: set the processors that a process outside may use, to those that it uses
// stopped-by: namespace.pid namespace.user capabilities
// needs: victim
// source: sched_setaffinity(2)
#define _GNU_SOURCE
#include <sched.h>

#include "probe.h"

int main(int argc, char **argv)
{
    int victim = atoi(argument(argc, argv, "victim"));
    cpu_set_t processors;
    if (sched_getaffinity(victim, sizeof processors, &processors) < 0)
        refused("sched_getaffinity");
    if (sched_setaffinity(victim, sizeof processors, &processors) < 0)
        refused("sched_setaffinity");
    reached("the processors of the process");
}
