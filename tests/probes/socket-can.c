// class: socket-families
// tries: open a CAN broadcast manager socket
// stopped-by: seccomp
// source: CVE-2021-3609
#define _GNU_SOURCE
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_CAN, SOCK_DGRAM, 2) < 0)
        refused("socket(AF_CAN)");
    reached("a CAN broadcast manager socket");
}
