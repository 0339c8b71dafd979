// class: socket-families
// tries: open a packet socket
// stopped-by: seccomp capabilities
// source: CVE-2020-14386, CVE-2017-7308
#define _GNU_SOURCE
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_PACKET, SOCK_RAW, 0) < 0)
        refused("socket(AF_PACKET)");
    reached("a packet socket");
}
