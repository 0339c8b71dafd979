// class: init
// tries: ask whether it may signal the cell's init, which is its parent
// stopped-by: capabilities landlock.scope
// source: kill(2), bubblewrap (pid 1 under the user id of the tool)
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    if (kill(getppid(), 0) < 0)
        refused("kill");
    reached("its parent, which it may signal");
}
