/* dies SIGNAL [MS]: after MS milliseconds sends SIGNAL to itself; SIGSTOP leaves it stopped. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2)
        return 64;
    long ms = argc > 2 ? atol(argv[2]) : 0;
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000};
    nanosleep(&t, NULL);
    kill(getpid(), atoi(argv[1]));
    for (;;)
        pause();
}
