/* uses_memory KIND MIB [PATH]: takes so many MiB of memory of one kind and holds it until it ends. Prints
 * `KIND got BYTES errno N`; exits 0 if it got all, else 1.
 *   anon      private pages                            stack     the main thread's stack, grown page by page
 *   shared    shared pages without a name              memfd     a memory file
 *   tmp, shm  a file on /tmp, on /dev/shm              sysv      System V shared memory
 *   pipes     full pipes                               sockets   full pairs of sockets
 *   tables    page tables alone: one read in every second MiB, which shows the kernel's page of zeros
 *   locked    locked pages, 4 KiB at a time            cache     reads PATH, a file of the host
 *   files     so many times 256 empty files on /tmp */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB (1L << 20)

static char block[65536];

static long touched(char *at, long size)
{
    if (at == MAP_FAILED)
        return 0;
    memset(at, 'x', size);
    return size;
}

static long mapped(int flags, int fd, long size)
{
    return touched(mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0), size);
}

static long grow_stack(long left)
{
    volatile char page[4096];
    memset((char *)page, 'x', sizeof page);
    long below = left > 4096 ? grow_stack(left - 4096) : 0;
    return below + (page[0] == 'x' ? 4096 : 0);
}

static long stack(long size)
{
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_STACK, &limit) == 0 ? grow_stack(size) : 0;
}

static long written(int fd, long size)
{
    long got = 0;
    while (got < size) {
        ssize_t n = write(fd, block, size - got < (long)sizeof block ? (size_t)(size - got) : sizeof block);
        if (n <= 0)
            break;
        got += n;
    }
    return got;
}

static long sysv(long size)
{
    int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    char *at = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    return touched(at, size);
}

/* Both ends stay open; what does not fit any more is EAGAIN, and then comes the next one. */
static long filled(int is_pipe, long size)
{
    long got = 0;
    while (got < size) {
        int ends[2];
        if (is_pipe ? pipe2(ends, O_NONBLOCK) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
            return got;
        int to = ends[1];
        ssize_t n;
        while (got < size && (n = write(to, block, 4096)) > 0)
            got += n;
        if (got < size && errno != EAGAIN)
            return got;
    }
    return got;
}

static long tables(long size)
{
    long each = 2 * MIB, count = size / 4096;
    char *at = mmap(NULL, count * each, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return 0;
    madvise(at, count * each, MADV_NOHUGEPAGE);
    long sum = 0;
    for (long n = 0; n < count; n++)
        sum += *(volatile char *)(at + n * each);
    return count * 4096 + sum;
}

static long locked(long size)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long got = 0;
    while (got < size && mlock(at + got, 4096) == 0)
        got += 4096;
    return got;
}

static long cache(const char *path, long size)
{
    int fd = open(path, O_RDONLY);
    long got = 0;
    ssize_t n;
    while (fd >= 0 && got < size && (n = read(fd, block, sizeof block)) > 0)
        got += n;
    return got;
}

static long files(long count)
{
    char path[64];
    for (long n = 0; n < count; n++) {
        snprintf(path, sizeof path, "/tmp/file-%ld", n);
        int fd = open(path, O_CREAT | O_WRONLY, 0600);
        if (fd < 0)
            return n;
        close(fd);
    }
    return count;
}

static long take(const char *kind, long size, const char *path)
{
    int fresh = O_CREAT | O_WRONLY;
    if (strcmp(kind, "anon") == 0)
        return mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1, size);
    if (strcmp(kind, "shared") == 0)
        return mapped(MAP_SHARED | MAP_ANONYMOUS, -1, size);
    if (strcmp(kind, "stack") == 0)
        return stack(size);
    if (strcmp(kind, "memfd") == 0)
        return written(memfd_create("memory", 0), size);
    if (strcmp(kind, "tmp") == 0)
        return written(open("/tmp/memory", fresh, 0600), size);
    if (strcmp(kind, "shm") == 0)
        return written(open("/dev/shm/memory", fresh, 0600), size);
    if (strcmp(kind, "sysv") == 0)
        return sysv(size);
    if (strcmp(kind, "pipes") == 0)
        return filled(1, size);
    if (strcmp(kind, "sockets") == 0)
        return filled(0, size);
    if (strcmp(kind, "tables") == 0)
        return tables(size);
    if (strcmp(kind, "locked") == 0)
        return locked(size);
    if (strcmp(kind, "cache") == 0)
        return cache(path, size);
    if (strcmp(kind, "files") == 0)
        return files(size / MIB * 256) / 256 * MIB;
    exit(64);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 64;
    long size = atol(argv[2]) * MIB;
    errno = 0;
    long got = take(argv[1], size, argc > 3 ? argv[3] : "");
    printf("%s got %ld errno %d\n", argv[1], got, got < size ? errno : 0);
    return got < size;
}
