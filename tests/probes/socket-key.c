// class: socket-families
// tries: open a socket of key management
// stopped-by: seccomp capabilities
// source: CVE-2022-1353
#define _GNU_SOURCE
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    if (socket(AF_KEY, SOCK_RAW, 2) < 0)
        refused("socket(AF_KEY)");
    reached("a socket of key management");
}
