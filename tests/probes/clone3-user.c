// class: namespaces
// tries: make a child in a user namespace of its own by clone3(2), whose flags a filter cannot see
// stopped-by: seccomp userns.nested
// source: moby 42680, clone3(2)
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &args, sizeof args);
    if (child < 0)
        refused("clone3(CLONE_NEWUSER)");
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    reached("a user namespace");
}
