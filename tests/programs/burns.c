/* burns MS [PROCESSES]: each of so many processes uses MS milliseconds of processor time, by its own clock of it, and
 * ends; the first one ends last, with code 0. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long used_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 64;
    int is_first = 1;
    for (int more = argc > 2 ? atoi(argv[2]) - 1 : 0; more > 0 && is_first; more--)
        is_first = fork() != 0;
    while (used_ms() < atol(argv[1]))
        ;
    if (is_first)
        while (wait(NULL) > 0)
            ;
    return 0;
}
