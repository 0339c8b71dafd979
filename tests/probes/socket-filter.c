// class: kernel-surface
// tries: have a socket filter compiled, which takes from a pool of the whole machine (net.core.bpf_jit_limit)
// stopped-by: seccomp
// source: socket(7)
#define _GNU_SOURCE
#include <linux/filter.h>
#include <sys/socket.h>

#include "probe.h"

int main(void)
{
    struct sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, 0xffff}};
    struct sock_fprog program = {1, all};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        broken("socket(AF_UNIX)");
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0)
        refused("setsockopt(SO_ATTACH_FILTER)");
    reached("a compiled socket filter");
}
