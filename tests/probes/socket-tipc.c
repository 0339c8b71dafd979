// class: socket-families
// tries: open a TIPC socket
// stopped-by: seccomp
// source: CVE-2021-43267
#define _GNU_SOURCE
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_TIPC, SOCK_SEQPACKET, 0) < 0)
        refused("socket(AF_TIPC)");
    reached("a TIPC socket");
}
