/* Prints `up` and waits for ever. With `deaf` it ignores every signal that can be ignored. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "deaf") == 0)
        for (int n = 1; n < NSIG; n++)
            signal(n, SIG_IGN);
    if (write(1, "up\n", 3) != 3)
        return 1;
    for (;;)
        pause();
}
