// class: kernel-surface
// tries: load a kernel module
// stopped-by: seccomp capabilities namespace.user
// source: init_module(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* What is given is no module, and not signed: refused as such, after the question for CAP_SYS_MODULE. */
    char image[] = "no module";
    if (syscall(SYS_init_module, image, sizeof image, "") < 0 && errno != ENOEXEC && errno != EKEYREJECTED)
        refused("init_module");
    reached("the loader of modules (past CAP_SYS_MODULE)");
}
