// class: argument-bits
// tries: put a keystroke into its standard input with a bit above the 32 that the kernel looks at
// stopped-by: seccomp
// source: CVE-2019-7303, CVE-2023-1523
#define _GNU_SOURCE
#include <asm/ioctls.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* Standard input is no terminal, mostly: ENOTTY is the word of the file, which the filter keeps the call from. As
     * a terminal it would get a character that means nothing to it. */
    char nothing = 0;
    if (syscall(SYS_ioctl, 0, (1L << 32) | TIOCSTI, &nothing) < 0 && errno != ENOTTY && errno != EIO)
        refused("ioctl(TIOCSTI)");
    reached("the ioctl of the file, past the filter");
}
