// class: ipc
// tries: take a message from a System V queue of a process outside
// stopped-by: namespace.ipc
// needs: msg
// witness: secret
// source: msgop(2)
#define _GNU_SOURCE
#include <sys/msg.h>

#include "probe.h"

int main(int argc, char **argv)
{
    struct {
        long type;
        char text[128];
    } found = {0};
    if (msgrcv(atoi(argument(argc, argv, "msg")), &found, sizeof found.text - 1, 0, IPC_NOWAIT | MSG_NOERROR) < 0)
        refused("msgrcv");
    reached("the queue, which holds %s", printable(found.text));
}
