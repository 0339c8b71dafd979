/* reads_urandom PROCESSES THREADS: each thread stays in the kernel for a second and longer at a time, reading up to 2 GiB
 * of random bytes into the same two MiB; a processor quota is only looked at between such calls. Prints `up`. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define PIECES 1024
#define PIECE (2 << 20)

static struct iovec pieces[PIECES];
static int fd;

static void *reads(void *nothing)
{
    while (readv(fd, pieces, PIECES) != 0)
        ;
    return nothing;
}

int main(int argc, char **argv)
{
    char *memory = malloc(PIECE);
    fd = open("/dev/urandom", O_RDONLY);
    if (argc != 3 || memory == NULL || fd < 0)
        return 2;
    for (int n = 0; n < PIECES; n++)
        pieces[n] = (struct iovec){.iov_base = memory, .iov_len = PIECE};
    if (write(1, "up\n", 3) != 3)
        return 1;
    for (int n = 1; n < atoi(argv[1]); n++)
        if (fork() == 0)
            break;
    pthread_t thread;
    for (int n = 1; n < atoi(argv[2]); n++)
        pthread_create(&thread, NULL, reads, NULL);
    reads(NULL);
    return 0;
}
