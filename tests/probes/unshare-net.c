// class: namespaces
// tries: make a network namespace, whose tables of packet filters are then its own
// stopped-by: seccomp capabilities
// source: CVE-2024-1086, CVE-2022-32250
#define _GNU_SOURCE
#include <sched.h>

#include "probe.h"

int main(void)
{
    if (unshare(CLONE_NEWNET) < 0)
        refused("unshare(CLONE_NEWNET)");
    reached("a namespace of its own");
}
