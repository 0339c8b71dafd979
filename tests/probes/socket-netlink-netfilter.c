// class: socket-families
// tries: open a netlink socket for the packet filters
// stopped-by: seccomp
// source: CVE-2024-1086, CVE-2023-32233
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER) < 0)
        refused("socket(AF_NETLINK, NETLINK_NETFILTER)");
    reached("a netlink socket for the packet filters");
}
