// class: kernel-surface
// tries: copy a mount, detached from every tree
// stopped-by: seccomp capabilities
// source: open_tree(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif

int main(void)
{
    /* Gone with the descriptor. */
    if (syscall(SYS_open_tree, AT_FDCWD, "/tmp", OPEN_TREE_CLONE | O_CLOEXEC) < 0)
        refused("open_tree(OPEN_TREE_CLONE)");
    reached("a detached copy of /tmp");
}
