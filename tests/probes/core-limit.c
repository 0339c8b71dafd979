// class: kernel-surface
// tries: change its limit of core files, which decides whether the kernel starts the host's core handler as root
// stopped-by: seccomp
// source: core(5), CVE-2022-4415
#define _GNU_SOURCE
#include <sys/resource.h>

#include "probe.h"

int main(void)
{
    /* Lower is always allowed by the kernel; and a limit of 0 starts the handler, of 1 it does not. */
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) < 0)
        refused("setrlimit(RLIMIT_CORE)");
    reached("a core limit of 0");
}
