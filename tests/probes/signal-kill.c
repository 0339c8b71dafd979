// class: processes
// tries: signal a process outside by kill(2)
// stopped-by: namespace.pid identity.unprivileged landlock.scope
// needs: victim
// witness: signal
// source: kill(2), landlock(7)
#define _GNU_SOURCE
#include <signal.h>

#include "probe.h"

int main(int argc, char **argv)
{
    if (kill(atoi(argument(argc, argv, "victim")), SIGUSR1) < 0)
        refused("kill");
    reached("the process, by SIGUSR1");
}
