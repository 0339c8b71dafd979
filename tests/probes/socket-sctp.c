// class: socket-families
// tries: open an SCTP socket
// stopped-by: seccomp
// source: CVE-2021-23133
#define _GNU_SOURCE
#include <netinet/in.h>
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) < 0)
        refused("socket(AF_INET, IPPROTO_SCTP)");
    reached("an SCTP socket");
}
