/* Leaves processes behind and ends with code 0 at once:
 *   daemon   double fork and setsid, descriptors closed
 *   stdout   a background child that keeps standard output open
 *   stopped  a child that has stopped itself
 *   chain    a chain in which each process forks the next one and ends, for ever
 * With `stay` as second argument the main process prints `up` and waits instead of ending. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static void daemonize(void)
{
    if (fork() != 0)
        return;
    setsid();
    if (fork() != 0)
        _exit(0);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    close(0);
    close(1);
    close(2);
    wait_for_ever();
}

static void keep_stdout(void)
{
    if (fork() == 0)
        wait_for_ever();
}

static void stop_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        wait_for_ever();
    }
    int status;
    waitpid(child, &status, WUNTRACED);
}

static void chain(void)
{
    if (fork() != 0)
        return;
    close(0);
    close(1);
    close(2);
    for (;;) {
        pid_t next = fork();
        if (next > 0)
            _exit(0);
        if (next < 0)
            usleep(100);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "daemon") == 0)
        daemonize();
    else if (strcmp(what, "stdout") == 0)
        keep_stdout();
    else if (strcmp(what, "stopped") == 0)
        stop_child();
    else if (strcmp(what, "chain") == 0)
        chain();
    else
        return 64;
    if (argc > 2 && strcmp(argv[2], "stay") == 0) {
        if (write(1, "up\n", 3) != 3)
            return 1;
        wait_for_ever();
    }
    return 0;
}
