// class: init
// tries: read the memory of the cell's init, which is its parent
// stopped-by: namespace.user capabilities landlock.fs landlock.net landlock.scope
// source: CVE-2016-9962, proc_pid_mem(5)
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char path[64], byte;
    unsigned long start;
    snprintf(path, sizeof path, "/proc/%d/maps", getppid());
    FILE *maps = fopen(path, "re");
    if (!maps)
        refused("open(/proc/PID/maps)");
    if (fscanf(maps, "%lx-", &start) != 1)
        stopped("/proc/PID/maps: it shows nothing");
    snprintf(path, sizeof path, "/proc/%d/mem", getppid());
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    if (memory < 0)
        refused("open(/proc/PID/mem)");
    if (pread(memory, &byte, 1, start) != 1)
        refused("pread(/proc/PID/mem)");
    reached("the memory of its parent at %lx", start);
}
