/* uses_pids KIND COUNT: makes so many processes or threads beside itself and holds them until it ends. Prints
 * `made N errno E`; exits 0 if it made all, else 1.
 *   forks     children that wait         threads   threads that wait
 *   zombies   children that have ended and that nobody waits for
 *   daemons   grandchildren in sessions of their own, whose parents have ended */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *wait_for_ever(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

static int thread(void)
{
    pthread_t one;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    errno = pthread_create(&one, &small, wait_for_ever, NULL);
    return errno == 0;
}

static int child(int stays)
{
    pid_t pid = fork();
    if (pid == 0 && stays)
        wait_for_ever(NULL);
    if (pid == 0)
        _exit(0);
    return pid > 0;
}

/* The middle one tells by its end whether there is a grandchild. */
static int grandchild(void)
{
    pid_t middle = fork();
    if (middle < 0)
        return 0;
    if (middle == 0) {
        setsid();
        pid_t last = fork();
        if (last == 0)
            wait_for_ever(NULL);
        _exit(last > 0 ? 0 : errno);
    }
    int status = 0;
    waitpid(middle, &status, 0);
    errno = WEXITSTATUS(status);
    return errno == 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 64;
    const char *kind = argv[1];
    int count = atoi(argv[2]), made = 0, more = 1;
    while (made < count && more) {
        if (strcmp(kind, "threads") == 0)
            more = thread();
        else if (strcmp(kind, "daemons") == 0)
            more = grandchild();
        else
            more = child(strcmp(kind, "forks") == 0);
        made += more;
    }
    printf("made %d errno %d\n", made, made < count ? errno : 0);
    return made < count;
}
