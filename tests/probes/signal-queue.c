// class: processes
// tries: signal one thread of a process outside, with a value
// stopped-by: namespace.pid identity.unprivileged landlock.scope
// needs: victim
// witness: signal
// source: rt_tgsigqueueinfo(2)
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    int victim = atoi(argument(argc, argv, "victim"));
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    if (syscall(SYS_rt_tgsigqueueinfo, victim, victim, SIGUSR1, &info) < 0)
        refused("rt_tgsigqueueinfo");
    reached("the process, by SIGUSR1");
}
