// class: ipc
// tries: raise a semaphore of a process outside
// stopped-by: namespace.ipc
// needs: sem
// source: semop(2)
#define _GNU_SOURCE
#include <sys/sem.h>

#include "probe.h"

int main(int argc, char **argv)
{
    struct sembuf raise = {.sem_op = 1, .sem_flg = IPC_NOWAIT};
    if (semop(atoi(argument(argc, argv, "sem")), &raise, 1) < 0)
        refused("semop");
    reached("the semaphore");
}
