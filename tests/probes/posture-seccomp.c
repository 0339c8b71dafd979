// class: posture
// kind: posture
// tries: see whether system calls are filtered
// stopped-by: seccomp
// source: seccomp(2), proc_pid_status(5)
#define _GNU_SOURCE
#include <linux/seccomp.h>

#include "probe.h"

int main(void)
{
    if (prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER)
        stopped("prctl(PR_GET_SECCOMP): filters are in force");
    reached("no filter");
}
