// class: processes
// tries: write to the memory of a process outside: the byte that is there
// stopped-by: namespace.pid seccomp namespace.user capabilities landlock.fs landlock.net landlock.scope
// needs: victim
// source: process_vm_writev(2)
#define _GNU_SOURCE
#include <sys/uio.h>

#include "probe.h"

int main(int argc, char **argv)
{
    int victim = atoi(argument(argc, argv, "victim"));
    char byte;
    struct iovec here = {.iov_base = &byte, .iov_len = 1};
    void *address = (void *)strtoul(argument(argc, argv, "victim-address"), NULL, 16);
    struct iovec there = {.iov_base = address, .iov_len = 1};
    if (process_vm_readv(victim, &here, 1, &there, 1, 0) < 0)
        refused("process_vm_readv");
    if (process_vm_writev(victim, &here, 1, &there, 1, 0) < 0)
        refused("process_vm_writev");
    reached("the memory of the process, for writing");
}
