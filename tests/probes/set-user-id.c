// class: privilege
// tries: become another user by a set-user-ID program of the host
// stopped-by: no-new-privs mounts.nosuid-nodev namespace.user
// source: CVE-2021-4034, execve(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* Those that print something to standard output when asked for help. */
static const char *const programs[] = {"/usr/bin/su", "/usr/bin/mount", "/bin/su", "/bin/mount"};

static const char *set_user_id_program(void)
{
    struct stat found;
    for (size_t n = 0; n < sizeof programs / sizeof *programs; n++)
        if (stat(programs[n], &found) == 0 && found.st_mode & S_ISUID)
            return programs[n];
    not_applicable("there is no set-user-ID program");
}

/* A pipe that takes nothing any more: who writes to it stays where it is until it is killed. */
static int full_pipe(void)
{
    int ends[2];
    static const char bytes[4096];
    if (pipe2(ends, O_NONBLOCK) < 0)
        broken("pipe2");
    while (write(ends[1], bytes, sizeof bytes) > 0)
        ;
    if (fcntl(ends[1], F_SETFL, 0) < 0)
        broken("fcntl");
    return ends[1];
}

int main(void)
{
    const char *program = set_user_id_program();
    /* Root has nothing to gain. */
    if (geteuid() == 0 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
        broken("setresuid");
    int out = full_pipe(), executed[2];
    if (pipe2(executed, O_CLOEXEC) < 0)
        broken("pipe2");
    pid_t child = fork();
    if (child < 0)
        broken("fork");
    if (child == 0) {
        dup2(out, 1);
        execl(program, program, "--help", (char *)NULL);
        dprintf(executed[1], "x");
        _exit(1);
    }
    close(executed[1]);
    char failed;
    if (read(executed[0], &failed, 1) != 0)
        broken(program);
    /* Limits may be read of a process that has our ids, all of them, and of no other (prlimit(2)). */
    struct rlimit limit;
    int is_other = prlimit(child, RLIMIT_NOFILE, NULL, &limit) < 0 && errno == EPERM;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (!is_other)
        stopped("execve: the program runs under our own ids");
    reached("another user, by %s", program);
}
