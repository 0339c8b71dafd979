// class: network
// tries: connect to a TCP port on the loopback of the machine by MPTCP, which Landlock's rules for TCP do not see
// stopped-by: namespace.net seccomp
// needs: tcp
// witness: tcp
// source: landlock-lsm/linux issue 54
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    char host[64];
    unsigned port;
    if (sscanf(argument(argc, argv, "tcp"), "%63[^:]:%u", host, &port) != 2)
        broken("tcp");
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
        broken("tcp");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);
    if (fd < 0) {
        if (errno == ENOPROTOOPT)
            not_applicable("net.mptcp.enabled is 0 here");
        refused("socket(AF_INET, IPPROTO_MPTCP)");
    }
    struct timeval second = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        refused("connect(AF_INET)");
    char answer[128] = "";
    if (write(fd, "x", 1) != 1 || read(fd, answer, sizeof answer - 1) < 0)
        refused("read");
    reached("the port, by MPTCP, which says %s", printable(answer));
}
