// class: kernel-surface
// tries: trace a child of its own
// stopped-by: seccomp
// source: CVE-2019-13272, ptrace(2)
#define _GNU_SOURCE
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    pid_t child = fork();
    if (child < 0)
        broken("fork");
    if (child == 0)
        for (;;)
            pause();
    int failed = ptrace(PTRACE_SEIZE, child, NULL, NULL) < 0 ? errno : 0;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    errno = failed;
    if (failed)
        refused("ptrace(PTRACE_SEIZE)");
    reached("a traced child");
}
