// class: kernel-surface
// tries: answer page faults of its own user space, which stretches races in the kernel
// stopped-by: seccomp
// source: userfaultfd(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#define UFFD_USER_MODE_ONLY 1 /* Linux 5.11; needs no capability whatever vm.unprivileged_userfaultfd says */

int main(void)
{
    if (syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY) < 0)
        refused("userfaultfd");
    reached("a userfaultfd");
}
