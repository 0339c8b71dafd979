/* fills FILES GATE: fills the scratch with that many files, prints `up`, and ends as soon as GATE is there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char page[4096];
    char path[64];
    if (argc != 3)
        return 2;
    for (int n = 0; n < atoi(argv[1]); n++) {
        snprintf(path, sizeof path, "/tmp/file-%d", n);
        int fd = open(path, O_CREAT | O_WRONLY, 0600);
        if (fd < 0 || write(fd, page, sizeof page) != sizeof page) {
            perror(path);
            return 1;
        }
        close(fd);
    }
    if (write(1, "up\n", 3) != 3)
        return 1;
    while (access(argv[2], F_OK) != 0)
        usleep(50000);
    return 0;
}
