// class: kernel-surface
// tries: take a domain in which all that can be read can be executed
// stopped-by: seccomp
// source: personality(2)
#define _GNU_SOURCE
#include <sys/personality.h>

#include "probe.h"

int main(void)
{
    if (personality(READ_IMPLIES_EXEC) < 0)
        refused("personality");
    reached("READ_IMPLIES_EXEC");
}
