// class: kernel-surface
// tries: reboot, with a magic number that no kernel takes
// stopped-by: seccomp capabilities
// source: reboot(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* EINVAL is the magic number's, which comes after the question for CAP_SYS_BOOT over the pid namespace. */
    if (syscall(SYS_reboot, 0, 0, 0, NULL) < 0 && errno != EINVAL)
        refused("reboot");
    reached("reboot(2) (past CAP_SYS_BOOT)");
}
