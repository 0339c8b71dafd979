/* memory_hog MODE: writes to ever more memory until somebody stops it.
 *   main         in the main process
 *   child CODE   in a child; the main process waits for the child's end and exits with CODE
 *   child-stay   in a child; the main process prints `up` after the child's end and waits for ever
 *   child-forks  in a child; then the main process forks until it is refused, and exits with code 3
 *   tmp          as a file on /tmp, until the write fails; prints the errno and exits 0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void eat(void)
{
    for (;;) {
        size_t size = 1 << 20;
        char *more = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (more == MAP_FAILED)
            _exit(9);
        memset(more, 'x', size);
    }
}

static void eat_in_child(void)
{
    pid_t child = fork();
    if (child == 0)
        eat();
    int status;
    waitpid(child, &status, 0);
}

static int fill_tmp(void)
{
    static char block[65536];
    int fd = open("/tmp/full", O_CREAT | O_WRONLY, 0600);
    while (write(fd, block, sizeof block) > 0)
        ;
    printf("%d\n", errno);
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "main";
    if (strcmp(mode, "main") == 0)
        eat();
    if (strcmp(mode, "tmp") == 0)
        return fill_tmp();
    eat_in_child();
    if (strcmp(mode, "child-stay") == 0) {
        if (write(1, "up\n", 3) != 3)
            return 1;
        for (;;)
            pause();
    }
    if (strcmp(mode, "child-forks") == 0) {
        for (;;) {
            pid_t child = fork();
            if (child < 0)
                return 3;
            if (child == 0)
                for (;;)
                    pause();
        }
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
