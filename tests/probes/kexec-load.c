// class: kernel-surface
// tries: load another kernel
// stopped-by: seccomp capabilities namespace.user
// source: kexec_load(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* Flags that the kernel knows none of: refused after the question for CAP_SYS_BOOT, before anything is changed. */
    if (syscall(SYS_kexec_load, 0, 0, NULL, 0xfff0UL) < 0 && errno != EINVAL)
        refused("kexec_load");
    reached("the loader of kernels (past CAP_SYS_BOOT)");
}
