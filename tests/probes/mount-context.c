// class: kernel-surface
// tries: open a file system context, the way to the bug of CVE-2022-0185
// stopped-by: seccomp capabilities
// source: CVE-2022-0185, fsopen(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    if (syscall(SYS_fsopen, "tmpfs", 0) < 0)
        refused("fsopen");
    reached("a file system context");
}
