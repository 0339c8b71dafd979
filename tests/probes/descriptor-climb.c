// class: descriptors
// tries: climb from the folders that it was started with, open or as working directory, to a file of the host
// stopped-by: fds.closed landlock.fs
// needs: open-file
// witness: secret
// source: CVE-2024-21626
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "probe.h"

/* Deeper than any folder is started in. */
#define STEPS 64
#define HIGHEST 65536

/* Opens the file from `dir` or from any folder above it. */
static int climb(int dir, const char *path)
{
    int here = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int step = 0; here >= 0 && step < STEPS; step++) {
        int file = openat(here, path + 1, O_RDONLY | O_CLOEXEC);
        if (file >= 0)
            return file;
        int above = openat(here, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(here);
        here = above;
    }
    return -1;
}

int main(int argc, char **argv)
{
    const char *path = argument(argc, argv, "open-file");
    /* Without a root of its own there is nothing to climb out of: the file is reached by its name. */
    if (access(path, R_OK) == 0)
        not_applicable("the file is in the root that is shown");
    int file = climb(AT_FDCWD, path);
    for (int fd = 3; file < 0 && fd < HIGHEST; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            file = climb(fd, path);
    if (file < 0)
        stopped("openat: no folder leads to the file");
    char found[128] = "";
    if (read(file, found, sizeof found - 1) < 0)
        refused("read");
    reached("the file, which holds %s", printable(found));
}
