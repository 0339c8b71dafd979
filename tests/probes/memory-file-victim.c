// class: processes
// tries: read the memory of a process outside by its file in /proc
// stopped-by: namespace.pid namespace.user capabilities landlock.fs landlock.net landlock.scope
// needs: victim
// witness: secret
// source: proc_pid_mem(5), CVE-2012-0056
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    char path[64], found[128] = "";
    snprintf(path, sizeof path, "/proc/%d/mem", atoi(argument(argc, argv, "victim")));
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    if (memory < 0)
        refused("open(/proc/PID/mem)");
    if (pread(memory, found, sizeof found - 1, strtoul(argument(argc, argv, "victim-address"), NULL, 16)) < 0)
        refused("pread(/proc/PID/mem)");
    reached("the memory of the process, which holds %s", printable(found));
}
