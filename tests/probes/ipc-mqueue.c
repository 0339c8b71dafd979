// class: ipc
// tries: take a message from a POSIX queue of a process outside
// stopped-by: namespace.ipc landlock.fs
// needs: mqueue
// witness: secret
// source: mq_overview(7)
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>

#include "probe.h"

int main(int argc, char **argv)
{
    struct mq_attr limits;
    mqd_t queue = mq_open(argument(argc, argv, "mqueue"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (queue < 0)
        refused("mq_open");
    if (mq_getattr(queue, &limits) < 0)
        refused("mq_getattr");
    char *found = calloc(1, limits.mq_msgsize + 1);
    if (!found)
        broken("calloc");
    if (mq_receive(queue, found, limits.mq_msgsize, NULL) < 0)
        refused("mq_receive");
    reached("the queue, which holds %.127s", printable(found));
}
