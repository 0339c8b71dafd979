// class: kernel-surface
// tries: raise its I/O privilege level
// stopped-by: seccomp capabilities namespace.user
// source: iopl(2)
#define _GNU_SOURCE
#include <sys/io.h>

#include "probe.h"

int main(void)
{
    if (iopl(3) < 0)
        refused("iopl");
    reached("every I/O port");
}
