/* leaves_traces write|look: puts a file into /tmp and /dev/shm, a System V segment, a POSIX queue and an abstract
 * socket (as far as it may), or prints which of them it finds. `write` also looks afterwards: what it prints is the positive control. */
#include <fcntl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define KEY 0x7c7c7c7c

static struct sockaddr_un name(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, "\0toolcell-trace", 15);
    return address;
}

static socklen_t length(void)
{
    return offsetof(struct sockaddr_un, sun_path) + 15;
}

static void put(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0666);
    if (fd < 0 || write(fd, "x", 1) != 1)
        perror(path);
}

static void leave(void)
{
    put("/tmp/trace");
    put("/dev/shm/trace");
    if (shmget(KEY, 4096, IPC_CREAT | 0666) < 0)
        perror("shmget");
    struct mq_attr small = {.mq_maxmsg = 2, .mq_msgsize = 64};
    if (mq_open("/trace", O_CREAT | O_RDWR, 0666, &small) == (mqd_t)-1)
        perror("mq_open");
    struct sockaddr_un address = name();
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&address, length()) != 0 || listen(fd, 1) != 0)
        perror("abstract socket");
}

static void look(void)
{
    if (access("/tmp/trace", F_OK) == 0)
        puts("tmp");
    if (access("/dev/shm/trace", F_OK) == 0)
        puts("shm");
    if (shmget(KEY, 4096, 0) >= 0)
        puts("sysv");
    if (mq_open("/trace", O_RDONLY) != (mqd_t)-1)
        puts("queue");
    struct sockaddr_un address = name();
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, length()) == 0)
        puts("abstract");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "write") == 0)
        leave();
    look();
    return 0;
}
