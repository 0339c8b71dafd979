// class: namespaces
// tries: enter a namespace by its file in /proc: the one that it is in
// stopped-by: seccomp capabilities
// source: setns(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>

#include "probe.h"

int main(void)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        broken("/proc/self/ns/uts");
    if (setns(fd, CLONE_NEWUTS) < 0)
        refused("setns");
    reached("a namespace by its file");
}
