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
    char found[128] = "";
    const void *segment = shmat(atoi(argument(argc, argv, "shm")), NULL, SHM_RDONLY);
    if (segment == (void *)-1)
        refused("shmat");
    memcpy(found, segment, sizeof found - 1);
    reached("the segment, which holds %s", printable(found));
}
