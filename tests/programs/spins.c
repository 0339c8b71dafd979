/* spins [PROCESSES]: uses the processor in so many processes, for ever. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    volatile unsigned long n = 0;
    for (int more = argc > 1 ? atoi(argv[1]) - 1 : 0; more > 0; more--)
        if (fork() == 0)
            break;
    for (;;)
        n++;
}
