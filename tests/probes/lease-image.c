// class: covert
// tries: take a lease on a program of the host, which tells when somebody opens it for writing and holds that up
// stopped-by: seccomp identity.unprivileged
// source: fcntl(2) (F_SETLEASE), isolate 2.6
#define _GNU_SOURCE
#include <fcntl.h>

#include "probe.h"

int main(void)
{
    int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        broken("/usr/bin/env");
    if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
        refused("fcntl(F_SETLEASE)");
    reached("a lease on /usr/bin/env");
}
