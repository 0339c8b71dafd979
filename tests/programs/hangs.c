/* hangs DIR mute|reads: mounts a user-space file system on DIR that does not answer, prints `up` and waits until it is
 * killed. `mute` does not even start the conversation; `reads` does, takes in every later request and answers none, so
 * that who waits for an answer cannot be killed. Its end is the end of the file system. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static char request[1 << 18];

/* Answers the first request, FUSE_INIT, as the kernel asks. */
static int begin(int fd)
{
    if (read(fd, request, sizeof request) < (ssize_t)sizeof(struct fuse_in_header))
        return -1;
    struct fuse_in_header head;
    memcpy(&head, request, sizeof head);
    struct {
        struct fuse_out_header head;
        struct fuse_init_out init;
    } answer = {
        .head = {.len = sizeof answer, .unique = head.unique},
        .init = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096},
    };
    return head.opcode == FUSE_INIT && write(fd, &answer, sizeof answer) == sizeof answer ? 0 : -1;
}

int main(int argc, char **argv)
{
    char options[128];
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (argc != 3 || fd < 0)
        return 2;
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
    if (mount("hangs", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
        perror("mount");
        return 1;
    }
    int reads = strcmp(argv[2], "reads") == 0;
    if (reads && begin(fd) < 0) {
        perror("begin");
        return 1;
    }
    if (write(1, "up\n", 3) != 3)
        return 1;
    for (;;) {
        if (!reads)
            pause();
        else if (read(fd, request, sizeof request) < 0)
            return 1;
    }
}
