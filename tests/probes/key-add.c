// class: kernel-surface
// tries: put a key into a keyring of its own process
// stopped-by: seccomp
// source: CVE-2016-0728, add_key(2)
#define _GNU_SOURCE
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    /* The process keyring goes with the process. */
    if (syscall(SYS_add_key, "user", "toolcell-probe", "x", 1UL, KEY_SPEC_PROCESS_KEYRING) < 0)
        refused("add_key");
    reached("a key in the process keyring");
}
