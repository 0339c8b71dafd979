// class: kernel-surface
// tries: change its root, the first step of leaving one by a working directory that lies outside
// stopped-by: seccomp capabilities
// source: chroot(2)
#define _GNU_SOURCE
#include <unistd.h>

#include "probe.h"

int main(void)
{
    if (chroot("/") < 0)
        refused("chroot");
    reached("chroot(2)");
}
