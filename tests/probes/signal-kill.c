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
    (void)argc;
    if (kill(atoi(argument(argv, "victim")), SIGUSR1) < 0)
        refused("kill");
    reached("the process, by SIGUSR1");
}
