// class: clock
// tries: set the length of a tick of the machine's clock, to what it is
// stopped-by: seccomp namespace.user capabilities
// source: adjtimex(2)
#define _GNU_SOURCE
#include <sys/timex.h>

#include "probe.h"

int main(void)
{
    /* Asking needs no capability, but the filter does not let it through either. */
    struct timex clock = {.modes = 0};
    if (adjtimex(&clock) < 0)
        refused("adjtimex");
    clock.modes = ADJ_TICK;
    if (adjtimex(&clock) < 0)
        refused("adjtimex(ADJ_TICK)");
    reached("the machine's clock");
}
