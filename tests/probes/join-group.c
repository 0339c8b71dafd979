// class: privilege
// tries: join the group of id 0 beside its own
// stopped-by: namespace.user capabilities
// source: setgroups(2), isolate 2.5
#define _GNU_SOURCE
#include <grp.h>

#include "probe.h"

int main(void)
{
    gid_t group = 0;
    if (setgroups(1, &group) < 0)
        refused("setgroups");
    reached("group id 0");
}
