// class: privilege
// tries: give a capability to whatever it executes
// stopped-by: capabilities
// source: prctl(2) (PR_CAP_AMBIENT_RAISE), CVE-2022-24769
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &head, sets) < 0)
        broken("capget");
    /* What is ambient has to be inheritable, which what is permitted may become. */
    sets[0].inheritable |= 1 << CAP_SETPCAP;
    if (syscall(SYS_capset, &head, sets) < 0)
        refused("capset");
    /* It has one already if it keeps them that way, with the raising of more locked. */
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SETPCAP, 0, 0) == 1)
        reached("CAP_SETPCAP, which is ambient");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETPCAP, 0, 0) < 0)
        refused("prctl(PR_CAP_AMBIENT_RAISE)");
    reached("CAP_SETPCAP, made ambient");
}
