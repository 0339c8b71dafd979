// class: socket-families
// tries: open a socket to the hypervisor, which no network namespace contains
// stopped-by: seccomp
// source: CVE-2021-26708, isolate 2.6
#define _GNU_SOURCE
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_VSOCK, SOCK_STREAM, 0) < 0)
        refused("socket(AF_VSOCK)");
    reached("a socket to the hypervisor, which no network namespace contains");
}
