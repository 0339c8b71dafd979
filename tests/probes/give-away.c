// class: privilege
// tries: give a file of its own to user id 0
// stopped-by: namespace.user capabilities
// source: chown(2)
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char path[] = "/tmp/probe-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        broken("mkstemp");
    unlink(path);
    if (fchown(fd, 0, 0) < 0)
        refused("fchown");
    reached("a file of user id 0");
}
