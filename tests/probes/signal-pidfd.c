// class: processes
// tries: signal a process outside by a descriptor for it
// stopped-by: namespace.pid identity.unprivileged landlock.scope
// needs: victim
// witness: signal
// source: pidfd_send_signal(2)
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    int victim = syscall(SYS_pidfd_open, atoi(argument(argc, argv, "victim")), 0);
    if (victim < 0)
        refused("pidfd_open");
    if (syscall(SYS_pidfd_send_signal, victim, SIGUSR1, NULL, 0) < 0)
        refused("pidfd_send_signal");
    reached("the process, by SIGUSR1");
}
