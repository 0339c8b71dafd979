// class: processes
// tries: read a limit of a process outside
// stopped-by: namespace.pid identity.unprivileged
// needs: victim
// source: prlimit(2)
#define _GNU_SOURCE
#include <sys/resource.h>

#include "probe.h"

int main(int argc, char **argv)
{
    struct rlimit found;
    if (prlimit(atoi(argument(argc, argv, "victim")), RLIMIT_NOFILE, NULL, &found) < 0)
        refused("prlimit");
    reached("a limit of the process: %llu open files", (unsigned long long)found.rlim_cur);
}
