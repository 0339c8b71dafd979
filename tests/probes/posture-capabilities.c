// class: posture
// kind: posture
// tries: see whether any of the five sets of capabilities holds one
// stopped-by: capabilities
// source: capabilities(7)
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
    for (int half = 0; half < 2; half++)
        if (sets[half].effective | sets[half].permitted | sets[half].inheritable)
            reached("effective, permitted or inheritable capabilities");
    /* Every number that the kernel knows; the first unknown one is EINVAL. */
    for (int capability = 0, known; (known = prctl(PR_CAPBSET_READ, capability)) >= 0; capability++) {
        if (known == 1)
            reached("capability %d in the bounding set", capability);
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1)
            reached("capability %d in the ambient set", capability);
    }
    stopped("capget, prctl: all sets are empty");
}
