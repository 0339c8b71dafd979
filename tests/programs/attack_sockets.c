/* attack_sockets DIR WORK
 *
 * Tries to reach the sockets DIR/stream and DIR/datagram, which somebody on the host listens on, in every way that names
 * an address, and does what needs no address. One line per act: its name and `ok` or the errno as a number.
 *   WORK  a directory to put a socket of its own into */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define HIGH_BIT (1L << 32)

static struct sockaddr_un stream = {.sun_family = AF_UNIX}, datagram = {.sun_family = AF_UNIX}, own = {.sun_family = AF_UNIX};

static int said(long result)
{
    return result < 0 ? errno : 0;
}

static int send_to(int fd, const void *address)
{
    return fd < 0 ? errno : said(syscall(SYS_sendto, fd, "x", 1, MSG_NOSIGNAL, address, sizeof datagram));
}

static int send_message(int fd, int many)
{
    if (fd < 0)
        return errno;
    struct iovec text = {.iov_base = "x", .iov_len = 1};
    struct mmsghdr message = {.msg_hdr = {.msg_name = &datagram, .msg_namelen = sizeof datagram, .msg_iov = &text, .msg_iovlen = 1}};
    return said(many ? sendmmsg(fd, &message, 1, MSG_NOSIGNAL) : sendmsg(fd, &message.msg_hdr, MSG_NOSIGNAL));
}

static int pair(int kind)
{
    int ends[2];
    return socketpair(AF_UNIX, kind, 0, ends) < 0 ? -1 : ends[0];
}

static int connect_stream(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd < 0 ? 999 : said(connect(fd, (struct sockaddr *)&stream, sizeof stream));
}

static int connect_datagram(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0)
        return errno;
    int failed = said(connect(fd, (struct sockaddr *)&datagram, sizeof datagram));
    return failed ? failed : said(send(fd, "x", 1, MSG_NOSIGNAL));
}

static int sendto_datagram(void) { return send_to(socket(AF_UNIX, SOCK_DGRAM, 0), &datagram); }
static int sendto_raw(void) { return send_to(socket(AF_UNIX, SOCK_RAW, 0), &datagram); }
static int sendto_flags(void) { return send_to(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), &datagram); }
static int sendto_high_bits(void) { return send_to(syscall(SYS_socket, AF_UNIX, HIGH_BIT | SOCK_DGRAM, 0), &datagram); }
static int sendto_pair(void) { return send_to(pair(SOCK_DGRAM), &datagram); }
static int sendmsg_datagram(void) { return send_message(socket(AF_UNIX, SOCK_DGRAM, 0), 0); }
static int sendmmsg_datagram(void) { return send_message(socket(AF_UNIX, SOCK_DGRAM, 0), 1); }
static int sendmsg_pair(void) { return send_message(pair(SOCK_DGRAM), 0); }
static int sendmmsg_pair(void) { return send_message(pair(SOCK_DGRAM), 1); }
static int sendmsg_raw_pair(void) { return send_message(pair(SOCK_RAW), 0); }

static int sendmsg_pair_high_bits(void)
{
    int ends[2];
    return syscall(SYS_socketpair, AF_UNIX, HIGH_BIT | SOCK_DGRAM, 0, ends) < 0 ? errno : send_message(ends[0], 0);
}

/* An address whose lower half is nothing, on a socket that could be had. */
static int sendto_low_half_null(void)
{
    void *at = mmap((void *)HIGH_BIT, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (at == MAP_FAILED)
        return 999;
    memcpy(at, &datagram, sizeof datagram);
    return send_to(pair(SOCK_STREAM), at);
}

/* Kinds with a connection ignore the name or refuse it: nothing may arrive at it. */
static int sendmsg_packet_pair(void) { return send_message(pair(SOCK_SEQPACKET), 0); }
static int sendmsg_stream_pair(void) { return send_message(pair(SOCK_STREAM), 0); }

static int talk_over_a_pair(void)
{
    int ends[2];
    char seen[2] = "";
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 || send(ends[0], "x", 1, MSG_NOSIGNAL) != 1)
        return errno;
    struct iovec text = {.iov_base = "y", .iov_len = 1};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
    if (sendmsg(ends[0], &message, MSG_NOSIGNAL) != 1)
        return errno;
    return recv(ends[1], seen, 2, MSG_WAITALL) == 2 && memcmp(seen, "xy", 2) == 0 ? 0 : 999;
}

static int listen_to_own(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own) < 0)
        return errno;
    return said(listen(fd, 1));
}

#define ACT(name) {#name, name}
static const struct {
    const char *name;
    int (*run)(void);
} acts[] = {
    ACT(connect_stream), ACT(connect_datagram), ACT(sendto_datagram), ACT(sendto_raw), ACT(sendto_flags),
    ACT(sendto_high_bits), ACT(sendto_pair), ACT(sendmsg_datagram), ACT(sendmmsg_datagram), ACT(sendmsg_pair),
    ACT(sendmmsg_pair), ACT(sendmsg_raw_pair), ACT(sendmsg_pair_high_bits), ACT(sendto_low_half_null),
    ACT(sendmsg_packet_pair), ACT(sendmsg_stream_pair), ACT(talk_over_a_pair), ACT(listen_to_own),
};

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    snprintf(stream.sun_path, sizeof stream.sun_path, "%s/stream", argv[1]);
    snprintf(datagram.sun_path, sizeof datagram.sun_path, "%s/datagram", argv[1]);
    snprintf(own.sun_path, sizeof own.sun_path, "%s/own", argv[2]);
    for (size_t n = 0; n < sizeof acts / sizeof acts[0]; n++) {
        int error = acts[n].run();
        if (error == 0)
            printf("%s ok\n", acts[n].name);
        else
            printf("%s %d\n", acts[n].name, error);
    }
    return 0;
}
