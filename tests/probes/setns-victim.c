// class: namespaces
// tries: enter the network namespace of a process outside
// stopped-by: namespace.pid seccomp namespace.user capabilities landlock.fs landlock.net landlock.scope
// needs: victim
// source: setns(2), CDK
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    int victim = syscall(SYS_pidfd_open, atoi(argument(argc, argv, "victim")), 0);
    if (victim < 0)
        refused("pidfd_open");
    if (setns(victim, CLONE_NEWNET) < 0)
        refused("setns(CLONE_NEWNET)");
    reached("the network namespace of the process");
}
