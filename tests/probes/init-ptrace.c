// class: init
// tries: trace the cell's init, which is its parent
// stopped-by: seccomp namespace.user capabilities landlock.fs landlock.net landlock.scope
// source: ptrace(2), bubblewrap (pid 1 under the user id of the tool)
#define _GNU_SOURCE
#include <sys/ptrace.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* Does not stop it; ends with this process. */
    if (ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) < 0)
        refused("ptrace(PTRACE_SEIZE)");
    reached("its parent, as its tracer");
}
