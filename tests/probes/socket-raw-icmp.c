// class: socket-families
// tries: open a raw socket
// stopped-by: seccomp capabilities
// source: raw(7)
#define _GNU_SOURCE
#include <netinet/in.h>
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) < 0)
        refused("socket(AF_INET, IPPROTO_ICMP)");
    reached("a raw socket");
}
