// class: processor
// tries: have its input and output done before that of all others
// stopped-by: namespace.user capabilities
// source: ioprio_set(2)
#define _GNU_SOURCE
#include <linux/ioprio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 7)) < 0)
        refused("ioprio_set(IOPRIO_CLASS_RT)");
    reached("the realtime class of input and output");
}
