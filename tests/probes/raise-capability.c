// class: privilege
// tries: raise a capability of its own
// stopped-by: capabilities
// source: capset(2)
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{.effective = 1 << CAP_SETPCAP, .permitted = 1 << CAP_SETPCAP}, {0}};
    if (syscall(SYS_capset, &head, sets) < 0)
        refused("capset");
    reached("CAP_SETPCAP");
}
