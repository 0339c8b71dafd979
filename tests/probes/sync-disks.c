// class: disk
// tries: have everything written of the file system that the host's programs lie on, and wait for its disk
// stopped-by: seccomp
// source: sync(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    int fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        broken("/usr");
    if (syncfs(fd) < 0)
        refused("syncfs");
    reached("the disk of /usr");
}
