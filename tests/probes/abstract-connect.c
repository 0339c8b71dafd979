// class: abstract-sockets
// tries: connect to an abstract Unix socket of a process outside
// stopped-by: namespace.net landlock.scope
// needs: abstract
// witness: abstract
// source: CVE-2020-15257
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    const char *name = argument(argc, argv, "abstract");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(name) > sizeof to.sun_path - 1)
        broken("abstract");
    memcpy(to.sun_path + 1, name, strlen(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        broken("socket(AF_UNIX)");
    if (connect(fd, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)) < 0)
        refused("connect(AF_UNIX, abstract)");
    struct timeval second = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    char answer[128] = "";
    if (read(fd, answer, sizeof answer - 1) < 0)
        refused("read");
    reached("the socket, which says %s", printable(answer));
}
