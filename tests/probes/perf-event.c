// class: kernel-surface
// tries: count an event of its own, in user space only, which kernel.perf_event_paranoid up to 2 leaves to all
// stopped-by: seccomp
// source: CVE-2013-2094, perf_event_open(2)
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event,
                                    .config = PERF_COUNT_SW_TASK_CLOCK, .disabled = 1,
                                    .exclude_kernel = 1, .exclude_hv = 1};
    if (syscall(SYS_perf_event_open, &event, 0, -1, -1, 0) < 0) {
        /* Some distributions have a level 3 and up that leaves it to nobody without CAP_PERFMON. */
        if (errno == EACCES && !is_filtered())
            not_applicable("kernel.perf_event_paranoid refuses it to everybody here");
        refused("perf_event_open");
    }
    reached("a perf event");
}
