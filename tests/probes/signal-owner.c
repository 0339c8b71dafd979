// class: processes
// tries: have the kernel signal a process outside, made the owner of a descriptor
// stopped-by: namespace.pid identity.unprivileged landlock.scope
// needs: victim
// witness: signal
// source: fcntl(2) (F_SETOWN, F_SETSIG)
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    int victim = atoi(argument(argc, argv, "victim"));
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        broken("socketpair");
    if (fcntl(ends[0], F_SETOWN, victim) < 0)
        refused("fcntl(F_SETOWN)");
    if (fcntl(ends[0], F_SETSIG, SIGUSR1) < 0 || fcntl(ends[0], F_SETFL, O_ASYNC) < 0)
        refused("fcntl(F_SETSIG)");
    /* Now something is there to be read, which the owner is told by the signal. Whether the kernel dropped that only
     * the owner knows: where the right to signal it is missing we say so, and its word would be against ours. */
    if (write(ends[1], "x", 1) != 1)
        refused("write");
    if (kill(victim, 0) < 0)
        refused("kill, asked after F_SETOWN,");
    reached("the process, by SIGUSR1");
}
