// class: namespaces
// tries: make a pid namespace for its children
// stopped-by: seccomp capabilities
// source: unshare(2)
#define _GNU_SOURCE
#include <sched.h>

#include "probe.h"

int main(void)
{
    if (unshare(CLONE_NEWPID) < 0)
        refused("unshare(CLONE_NEWPID)");
    reached("a namespace of its own");
}
