// class: terminal
// tries: choose the line discipline of a terminal, which loads kernel code that nothing else runs
// stopped-by: namespace.mount landlock.fs seccomp
// source: CVE-2017-2636, ioctl_tty(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "probe.h"

#define PLAIN 0 /* N_TTY, which every terminal has */

int main(void)
{
    int discipline = PLAIN;
    int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        refused("open(/dev/ptmx)");
    if (ioctl(terminal, TIOCSETD, &discipline) < 0)
        refused("ioctl(TIOCSETD)");
    reached("the line discipline of a terminal");
}
