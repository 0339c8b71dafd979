// class: page-cache
// tries: ask which pages of a program of the host are in the page cache, which tells what others run
// stopped-by: seccomp identity.unprivileged
// source: CVE-2019-5489, cachestat(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "probe.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* ENOSYS does not tell: a filter that does not know the call would answer the same. */
static int is_older_than_the_call(void)
{
    struct utsname kernel;
    unsigned major, minor;
    if (uname(&kernel) < 0 || sscanf(kernel.release, "%u.%u", &major, &minor) != 2)
        broken("uname");
    return major < 6 || (major == 6 && minor < 5);
}

int main(void)
{
    if (is_older_than_the_call())
        not_applicable("cachestat is of Linux 6.5");
    struct {
        uint64_t offset, length;
    } whole = {0, 0};
    struct {
        uint64_t cache, dirty, writeback, evicted, recently_evicted;
    } found = {0};
    int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        broken("/usr/bin/env");
    /* Since Linux 6.14 only who owns the file, or may write it, is told. */
    if (syscall(SYS_cachestat, fd, &whole, &found, 0) < 0)
        refused("cachestat");
    reached("%llu cached pages of /usr/bin/env", (unsigned long long)found.cache);
}
