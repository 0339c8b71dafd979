// class: privilege
// tries: send the process id of another as its own over a Unix socket, to whoever trusts the kernel's word on that
// stopped-by: capabilities
// source: unix(7) (SCM_CREDENTIALS)
#define _GNU_SOURCE
#include <sys/socket.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        broken("socketpair");
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr head;
    } control = {.head.cmsg_len = CMSG_LEN(sizeof(struct ucred)),
                 .head.cmsg_level = SOL_SOCKET,
                 .head.cmsg_type = SCM_CREDENTIALS};
    struct ucred parent = {.pid = getppid(), .uid = getuid(), .gid = getgid()};
    memcpy(CMSG_DATA(&control.head), &parent, sizeof parent);
    struct iovec text = {.iov_base = "x", .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (sendmsg(ends[0], &message, MSG_NOSIGNAL) < 0)
        refused("sendmsg(SCM_CREDENTIALS)");
    reached("a message in the name of its parent");
}
