// class: processes
// tries: take a descriptor from a process outside: its standard output
// stopped-by: namespace.pid seccomp namespace.user capabilities landlock.fs landlock.net landlock.scope
// needs: victim
// source: pidfd_getfd(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

int main(int argc, char **argv)
{
    int victim = syscall(SYS_pidfd_open, atoi(argument(argc, argv, "victim")), 0);
    if (victim < 0)
        refused("pidfd_open");
    if (syscall(SYS_pidfd_getfd, victim, 1, 0) < 0)
        refused("pidfd_getfd");
    reached("a descriptor of the process");
}
