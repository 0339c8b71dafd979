// class: kernel-surface
// tries: make memory that the kernel itself does not map, a newer call that no list names
// stopped-by: seccomp
// source: memfd_secret(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

int main(void)
{
    if (syscall(SYS_memfd_secret, 0) < 0)
        refused("memfd_secret");
    reached("secret memory");
}
