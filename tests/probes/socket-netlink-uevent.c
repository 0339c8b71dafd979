// class: socket-families
// tries: open a netlink socket for events of devices
// stopped-by: seccomp
// source: CVE-2009-1185
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT) < 0)
        refused("socket(AF_NETLINK, NETLINK_KOBJECT_UEVENT)");
    reached("a netlink socket for events of devices");
}
