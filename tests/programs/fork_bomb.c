/* fork_bomb exit|stay: every process forks as long as it can. With `exit` the first one ends with code 1 as soon as
 * a fork is refused, with `zero` it ends with code 0 then, with `stay` it goes on for ever. */
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    pid_t first = getpid();
    const char *mode = argc > 1 ? argv[1] : "stay";
    for (;;) {
        pid_t child = fork();
        if (child >= 0 || getpid() != first)
            continue;
        if (strcmp(mode, "exit") == 0)
            return 1;
        if (strcmp(mode, "zero") == 0)
            return 0;
    }
}
