// class: kernel-surface
// tries: have the kernel look for a key, which can start a helper of the host's (/sbin/request-key)
// stopped-by: seccomp
// source: request_key(2), keyrings(7)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* Without call-out information no helper is started. That there is no such key is an answer of the search. */
    if (syscall(SYS_request_key, "user", "toolcell-probe", NULL, 0) < 0 && errno != ENOKEY)
        refused("request_key");
    reached("the search through its keyrings");
}
