// class: runtime-binary
// tries: open the program of the cell's init, which is its parent, through /proc
// stopped-by: namespace.user capabilities landlock.fs landlock.net landlock.scope
// source: CVE-2019-5736
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", getppid());
    if (open(path, O_RDONLY | O_CLOEXEC) < 0)
        refused("open(/proc/PID/exe)");
    reached("the program of its parent");
}
