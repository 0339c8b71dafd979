// class: processes
// tries: ask on which node a page of a process outside lies
// stopped-by: namespace.pid seccomp namespace.user capabilities landlock.fs landlock.net landlock.scope
// needs: victim
// source: move_pages(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    void *page = (void *)(strtoul(argument(argc, argv, "victim-address"), NULL, 16) & ~4095UL);
    int node = 0;
    /* Without nodes to move to it only asks. */
    if (syscall(SYS_move_pages, atoi(argument(argc, argv, "victim")), 1UL, &page, NULL, &node, 0) < 0)
        refused("move_pages");
    reached("a page of the process, on node %d", node);
}
