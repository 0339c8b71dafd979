// class: processes
// tries: trace a process outside
// stopped-by: namespace.pid seccomp namespace.user capabilities landlock.fs landlock.net landlock.scope
// needs: victim
// source: ptrace(2), CVE-2016-9962
#define _GNU_SOURCE
#include <sys/ptrace.h>

#include "probe.h"

int main(int argc, char **argv)
{
    /* Does not stop it; ends with this process. */
    if (ptrace(PTRACE_SEIZE, atoi(argument(argc, argv, "victim")), NULL, NULL) < 0)
        refused("ptrace(PTRACE_SEIZE)");
    reached("the process, as its tracer");
}
