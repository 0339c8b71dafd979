// class: kernel-surface
// tries: install a segment in its local descriptor table
// stopped-by: seccomp
// source: CVE-2017-17053, modify_ldt(2)
#define _GNU_SOURCE
#include <asm/ldt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    struct user_desc segment = {.limit = 1, .seg_32bit = 1, .read_exec_only = 1};
    if (syscall(SYS_modify_ldt, 0x11 /* write */, &segment, sizeof segment) != 0)
        refused("modify_ldt");
    reached("the local descriptor table");
}
