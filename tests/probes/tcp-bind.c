// class: network
// tries: bind a TCP port
// stopped-by: seccomp landlock.net
// source: landlock(7)
#define _GNU_SOURCE
#include <netinet/in.h>
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    /* Any address and any port: needs no interface. */
    struct sockaddr_in any = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        refused("socket(AF_INET)");
    if (bind(fd, (struct sockaddr *)&any, sizeof any) < 0)
        refused("bind(AF_INET)");
    reached("a TCP port");
}
