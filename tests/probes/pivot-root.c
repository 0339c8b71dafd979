// class: kernel-surface
// tries: exchange the root of the mount namespace
// stopped-by: seccomp capabilities landlock.fs
// source: pivot_root(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* The root for itself: refused as busy, after all questions for rights. */
    if (syscall(SYS_pivot_root, "/", "/") < 0 && errno != EBUSY && errno != EINVAL)
        refused("pivot_root");
    reached("the exchange of the root (past CAP_SYS_ADMIN)");
}
