// class: socket-families
// tries: open a socket past the network stack
// stopped-by: seccomp capabilities
// source: Linux Documentation/networking/af_xdp.rst
#define _GNU_SOURCE
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_XDP, SOCK_RAW, 0) < 0)
        refused("socket(AF_XDP)");
    reached("a socket past the network stack");
}
