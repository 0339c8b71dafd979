// class: path-sockets
// tries: connect to a Unix socket in a folder of the host, as that of a container engine is one
// stopped-by: namespace.mount
// needs: socket
// witness: socket
// source: unix(7), deepce (docker.sock)
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (snprintf(to.sun_path, sizeof to.sun_path, "%s", argument(argc, argv, "socket")) >= (int)sizeof to.sun_path)
        broken("socket");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        broken("socket(AF_UNIX)");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        refused("connect(AF_UNIX, path)");
    struct timeval second = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    char answer[128] = "";
    if (read(fd, answer, sizeof answer - 1) < 0)
        refused("read");
    reached("the socket, which says %s", printable(answer));
}
