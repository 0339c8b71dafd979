// class: kernel-surface
// tries: have the kernel write its accounting to a file of its choice
// stopped-by: seccomp capabilities namespace.user
// source: acct(2)
#define _GNU_SOURCE
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* The file is not there, which is found out after the question for CAP_SYS_PACCT. */
    if (acct("/tmp/probe-no-such-file") < 0 && errno != ENOENT)
        refused("acct");
    reached("process accounting (past CAP_SYS_PACCT)");
}
