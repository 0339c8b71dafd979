// class: processes
// tries: open a descriptor for a process outside, which tells when it ends
// stopped-by: namespace.pid
// needs: victim
// source: pidfd_open(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    if (syscall(SYS_pidfd_open, atoi(argument(argc, argv, "victim")), 0) < 0)
        refused("pidfd_open");
    reached("a descriptor for the process");
}
