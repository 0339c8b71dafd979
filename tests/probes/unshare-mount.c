// class: namespaces
// tries: make a mount namespace
// stopped-by: seccomp capabilities
// source: unshare(2), CVE-2021-3493
#define _GNU_SOURCE
#include <sched.h>

#include "probe.h"

int main(void)
{
    if (unshare(CLONE_NEWNS) < 0)
        refused("unshare(CLONE_NEWNS)");
    reached("a namespace of its own");
}
