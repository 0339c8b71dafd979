// class: argument-bits
// tries: make a user namespace by clone(2) with a bit above the 32 that the kernel looks at
// stopped-by: seccomp userns.nested
// source: CVE-2019-7303, clone(2)
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    long child = syscall(SYS_clone, (1L << 32) | CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child < 0)
        refused("clone(CLONE_NEWUSER)");
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    reached("a user namespace");
}
