// class: processes
// tries: read the memory of a process outside by process_vm_readv(2)
// stopped-by: namespace.pid seccomp namespace.user capabilities landlock.fs landlock.net landlock.scope
// needs: victim
// witness: secret
// source: process_vm_readv(2)
#define _GNU_SOURCE
#include <sys/uio.h>

#include "probe.h"

int main(int argc, char **argv)
{
    char found[128] = "";
    struct iovec here = {.iov_base = found, .iov_len = sizeof found - 1};
    void *address = (void *)strtoul(argument(argc, argv, "victim-address"), NULL, 16);
    struct iovec there = {.iov_base = address, .iov_len = here.iov_len};
    if (process_vm_readv(atoi(argument(argc, argv, "victim")), &here, 1, &there, 1, 0) < 0)
        refused("process_vm_readv");
    reached("the memory of the process, which holds %s", printable(found));
}
