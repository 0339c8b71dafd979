// class: namespaces
// tries: enter a user namespace of its own, which gives all capabilities in it
// stopped-by: seccomp userns.nested
// source: CVE-2022-0185, CVE-2024-1086
#define _GNU_SOURCE
#include <sched.h>

#include "probe.h"

int main(void)
{
    if (unshare(CLONE_NEWUSER) < 0)
        refused("unshare(CLONE_NEWUSER)");
    reached("a user namespace");
}
