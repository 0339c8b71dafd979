// class: covert
// tries: learn from a name that is taken that somebody outside has an abstract Unix socket of that name
// stopped-by: namespace.net
// needs: abstract
// source: unix(7)
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "probe.h"

int main(int argc, char **argv)
{
    const char *name = argument(argc, argv, "abstract");
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    if (strlen(name) > sizeof own.sun_path - 1)
        broken("abstract");
    memcpy(own.sun_path + 1, name, strlen(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        broken("socket(AF_UNIX)");
    if (bind(fd, (struct sockaddr *)&own, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)) == 0)
        stopped("bind(AF_UNIX, abstract): the name is free in here");
    if (errno != EADDRINUSE)
        refused("bind(AF_UNIX, abstract)");
    reached("the names of abstract sockets outside");
}
