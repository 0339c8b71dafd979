// class: namespaces
// tries: set the name of the machine, to what it is
// stopped-by: namespace.uts namespace.user capabilities seccomp
// needs: hostname
// source: sethostname(2)
#define _GNU_SOURCE
#include <unistd.h>

#include "probe.h"

int main(int argc, char **argv)
{
    const char *name = argument(argc, argv, "hostname");
    char now[256];
    if (gethostname(now, sizeof now) < 0)
        broken("gethostname");
    /* Only if it is the machine's that would be set: a name of the cell's own may change. */
    if (strcmp(name, now) != 0)
        stopped("gethostname: another name than the machine's");
    if (sethostname(name, strlen(name)) < 0)
        refused("sethostname");
    reached("the name of the machine");
}
