// class: kernel-surface
// tries: start swapping to a file
// stopped-by: seccomp capabilities namespace.user
// source: swapon(2)
#define _GNU_SOURCE
#include <sys/swap.h>

#include "probe.h"

int main(void)
{
    /* The file is not there, which is found out after the question for CAP_SYS_ADMIN. */
    if (swapon("/tmp/probe-no-such-file", 0) < 0 && errno != ENOENT)
        refused("swapon");
    reached("the start of swapping (past CAP_SYS_ADMIN)");
}
