// class: privilege
// tries: become user id 0
// stopped-by: namespace.user capabilities
// source: setuid(2)
#define _GNU_SOURCE
#include <unistd.h>

#include "probe.h"

int main(void)
{
    if (setresuid(0, 0, 0) < 0)
        refused("setresuid");
    reached("user id 0");
}
