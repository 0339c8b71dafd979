// class: network
// tries: list the addresses of the machine by an ioctl of a Unix socket
// stopped-by: namespace.net
// source: netdevice(7)
#define _GNU_SOURCE
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    struct ifreq found[16];
    struct ifconf list = {.ifc_len = sizeof found, .ifc_req = found};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        broken("socket(AF_UNIX)");
    if (ioctl(fd, SIOCGIFCONF, &list) < 0)
        refused("ioctl(SIOCGIFCONF)");
    if (list.ifc_len == 0)
        stopped("ioctl(SIOCGIFCONF): no interface has an address");
    reached("the addresses of %d interfaces", (int)(list.ifc_len / sizeof *found));
}
