// class: memory
// tries: choose how soon it is killed when the machine runs out of memory: as it is
// stopped-by: proc.masked landlock.fs
// source: proc_pid_oom_score_adj(5)
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char score[16];
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        refused("open(/proc/self/oom_score_adj)");
    ssize_t length = read(fd, score, sizeof score);
    if (length <= 0 || pwrite(fd, score, length, 0) < 0)
        refused("write(/proc/self/oom_score_adj)");
    reached("its score of the out-of-memory killer");
}
