// class: namespaces
// tries: make a child in a user namespace of its own by clone(2)
// stopped-by: seccomp userns.nested
// source: CVE-2022-0185
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child < 0)
        refused("clone(CLONE_NEWUSER)");
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    reached("a user namespace");
}
