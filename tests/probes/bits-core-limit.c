// class: argument-bits
// tries: change its limit of core files by prlimit(2) with a bit above the 32 that the kernel looks at
// stopped-by: seccomp
// source: CVE-2019-7303, core(5)
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    struct rlimit none = {0, 0};
    if (syscall(SYS_prlimit64, 0, (1L << 32) | RLIMIT_CORE, &none, NULL) < 0)
        refused("prlimit(RLIMIT_CORE)");
    reached("a core limit of 0");
}
