// class: covert
// tries: be told by a signal what is read in a folder of the host's programs
// stopped-by: seccomp
// source: fcntl(2) (F_NOTIFY), isolate 2.6
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>

#include "probe.h"

int main(void)
{
    /* It may come before the last word is out. */
    signal(SIGIO, SIG_IGN);
    int fd = open("/usr/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        broken("/usr/bin");
    if (fcntl(fd, F_NOTIFY, DN_ACCESS) < 0) {
        if (errno == EINVAL && !is_filtered())
            not_applicable("this kernel has no F_NOTIFY");
        refused("fcntl(F_NOTIFY)");
    }
    reached("the notification of /usr/bin");
}
