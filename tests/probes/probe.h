/* What every C probe is made of: its arguments by name, and the ways to end. README.md has the contract. */
#ifndef PROBE_H
#define PROBE_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* The value of `name=value`. A probe that is not given what it needs is broken, not stopped. */
static inline const char *argument(int argc, char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int index = 1; index < argc; index++)
        if (strncmp(argv[index], name, length) == 0 && argv[index][length] == '=')
            return argv[index] + length + 1;
    fprintf(stderr, "usage: %s %s=VALUE\n", argv[0], name);
    exit(2);
}

/* What was found, cut off at the first byte that is not printable, so that the last line stays one. */
static inline const char *printable(char *found)
{
    char *end = found;
    while (*end >= ' ' && *end <= '~')
        end++;
    *end = '\0';
    return found;
}

/* The act got through. */
__attribute__((format(printf, 1, 2))) static inline _Noreturn void reached(const char *what, ...)
{
    va_list values;
    va_start(values, what);
    fputs("REACHED ", stdout);
    vprintf(what, values);
    putchar('\n');
    exit(0);
}

/* The act was stopped by something that is no errno. */
static inline _Noreturn void stopped(const char *how)
{
    printf("STOPPED %s\n", how);
    exit(1);
}

/* The kernel does not have what is tried. */
static inline _Noreturn void not_applicable(const char *why)
{
    printf("NOT-APPLICABLE %s\n", why);
    exit(3);
}

/* Whether a filter of system calls is in force. */
static inline int is_filtered(void)
{
    return prctl(PR_GET_SECCOMP) != 0;
}

/* The call was refused with errno. That the kernel lacks it can be told from a filter's answer only where no filter is
 * in force: then these are the kernel's own words. */
static inline _Noreturn void refused(const char *call)
{
    int error = errno;
    int is_unknown = error == ENOSYS || error == EAFNOSUPPORT || error == EPROTONOSUPPORT;
    if (is_unknown && !is_filtered()) {
        printf("NOT-APPLICABLE this kernel has no %s\n", call);
        exit(3);
    }
    printf("STOPPED %s: %s\n", call, strerrorname_np(error));
    exit(1);
}

/* The ground for the act could not be laid: says nothing about any control. */
static inline _Noreturn void broken(const char *call)
{
    perror(call);
    exit(2);
}

#endif
