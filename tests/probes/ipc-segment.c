// class: ipc
// tries: attach a shared memory segment of a process outside
// stopped-by: namespace.ipc
// needs: shm
// witness: secret
// source: shmop(2), runc TestIPCPrivate
#define _GNU_SOURCE
#include <sys/shm.h>

#include "probe.h"

int main(int argc, char **argv)
{
    (void)argc;
    const char *found = shmat(atoi(argument(argv, "shm")), NULL, SHM_RDONLY);
    if (found == (void *)-1)
        refused("shmat");
    reached("the segment, which holds %.127s", found);
}
