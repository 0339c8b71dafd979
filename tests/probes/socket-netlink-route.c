// class: socket-families
// tries: open a netlink socket for the tables of routes and links
// stopped-by: seccomp
// source: rtnetlink(7)
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) < 0)
        refused("socket(AF_NETLINK, NETLINK_ROUTE)");
    reached("a netlink socket for the tables of routes and links");
}
