// class: init
// tries: take a descriptor from the cell's init, which is its parent
// stopped-by: seccomp namespace.user capabilities landlock.fs landlock.net landlock.scope
// source: pidfd_getfd(2), bubblewrap (pid 1 robbed of descriptors)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

int main(void)
{
    int parent = syscall(SYS_pidfd_open, getppid(), 0);
    if (parent < 0)
        refused("pidfd_open");
    if (syscall(SYS_pidfd_getfd, parent, 0, 0) < 0)
        refused("pidfd_getfd");
    reached("a descriptor of its parent");
}
