// class: terminal
// tries: make a terminal its own and put a keystroke into its input, as whoever shares one with a shell could
// stopped-by: namespace.mount landlock.fs seccomp
// source: CVE-2017-5226, CVE-2016-2568
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

/* In a session of its own, as only the controlling terminal may be written to. The value is the errno. */
static int inject(int side)
{
    char key = 'x', seen = 0;
    struct termios raw;
    if (setsid() < 0 || ioctl(side, TIOCSCTTY, 0) < 0 || tcgetattr(side, &raw) < 0)
        return errno;
    cfmakeraw(&raw);
    if (tcsetattr(side, TCSANOW, &raw) < 0 || ioctl(side, TIOCSTI, &key) < 0)
        return errno;
    return read(side, &seen, 1) == 1 && seen == key ? 0 : EIO;
}

int main(void)
{
    int unlocked = 0, status;
    int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        refused("open(/dev/ptmx)");
    if (ioctl(terminal, TIOCSPTLCK, &unlocked) < 0)
        refused("ioctl(TIOCSPTLCK)");
    int side = ioctl(terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (side < 0)
        refused("ioctl(TIOCGPTPEER)");
    pid_t child = fork();
    if (child < 0)
        broken("fork");
    if (child == 0)
        _exit(inject(side));
    if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
        broken("waitpid");
    errno = WEXITSTATUS(status);
    if (errno == EIO && !is_filtered())
        not_applicable("dev.tty.legacy_tiocsti refuses it here");
    if (errno)
        refused("ioctl(TIOCSTI)");
    reached("a keystroke in the input of a terminal");
}
