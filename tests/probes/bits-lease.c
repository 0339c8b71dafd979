// class: argument-bits
// tries: take a lease on a file of its own with a bit above the 32 that the kernel looks at
// stopped-by: seccomp
// source: CVE-2019-7303, fcntl(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char path[] = "/tmp/probe-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        broken("mkstemp");
    unlink(path);
    if (syscall(SYS_fcntl, fd, (1L << 32) | F_SETLEASE, F_WRLCK) < 0)
        refused("fcntl(F_SETLEASE)");
    reached("a lease");
}
