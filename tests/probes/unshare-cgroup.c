// class: namespaces
// tries: make a cgroup namespace, from which a hierarchy can be mounted
// stopped-by: seccomp capabilities
// source: CVE-2022-0492
#define _GNU_SOURCE
#include <sched.h>

#include "probe.h"

int main(void)
{
    if (unshare(CLONE_NEWCGROUP) < 0)
        refused("unshare(CLONE_NEWCGROUP)");
    reached("a namespace of its own");
}
