// class: page-cache
// tries: bind a socket of the kernel's cryptography, by which pages of files that cells share were written
// stopped-by: seccomp
// source: CVE-2026-31431, CVE-2016-10147
#define _GNU_SOURCE
#include <linux/if_alg.h>
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    struct sockaddr_alg digest = {.salg_family = AF_ALG, .salg_type = "hash", .salg_name = "sha256"};
    int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        refused("socket(AF_ALG)");
    if (bind(fd, (struct sockaddr *)&digest, sizeof digest) < 0)
        refused("bind(AF_ALG)");
    reached("an AF_ALG socket");
}
