/* field_calls WHAT: system calls that a C library or a runtime makes, by number.
 *   newer      those that came with newer kernels and that libraries try first: `NAME ok`, or its errno
 *   unknown    every number from 480 to 1000, which no kernel of ours has: prints each errno that came, once
 *   families   a socket of every family but AF_UNIX: prints each errno that came, once; `ok` would be one of them
 *   old_abi    the i386 way to ask for one's process number */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void said(const char *name, long result)
{
    if (result < 0)
        printf("%s %d\n", name, errno);
    else
        printf("%s ok\n", name);
}

static void newer(void)
{
    struct open_how how = {.flags = O_RDONLY};
    struct statx stat;
    said("faccessat2", syscall(SYS_faccessat2, AT_FDCWD, "/usr", R_OK, AT_EACCESS));
    said("openat2", syscall(SYS_openat2, AT_FDCWD, "/usr", &how, sizeof how));
    said("statx", syscall(SYS_statx, AT_FDCWD, "/usr", 0, STATX_BASIC_STATS, &stat));
    said("close_range", syscall(SYS_close_range, 100, 200, 0));
    said("memfd_create", syscall(SYS_memfd_create, "m", MFD_CLOEXEC));
    /* Of the library's own registration: EBUSY, EINVAL or EPERM by the kernel, and never that it is not there. */
    long result = syscall(SYS_rseq, NULL, 0, 0, 0);
    printf("rseq %s\n", result < 0 && errno == ENOSYS ? "missing" : "ok");
    result = syscall(SYS_clone3, NULL, 0);
    printf("clone3 %d\n", result < 0 ? errno : 0);
}

static void once(char *seen, long result)
{
    int number = result < 0 ? errno : 0;
    if (!seen[number])
        printf(number ? "%d\n" : "ok\n", number);
    seen[number] = 1;
}

int main(int argc, char **argv)
{
    static char seen[4096];
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "newer") == 0)
        newer();
    else if (strcmp(what, "unknown") == 0)
        for (int n = 480; n <= 1000; n++)
            once(seen, syscall(n, -1, -1, -1, -1, -1, -1));
    else if (strcmp(what, "families") == 0)
        for (int n = 0; n < 64; n++) {
            if (n == AF_UNIX)
                continue;
            for (int type = SOCK_STREAM; type <= SOCK_SEQPACKET; type++)
                once(seen, socket(n, type, 0));
        }
    else if (strcmp(what, "old_abi") == 0) {
        long result = 20;
        fputs("asks\n", stdout);
        fflush(stdout);
        __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
        printf("%s\n", result == getpid() ? "ok" : "other");
    } else
        return 64;
    return 0;
}
