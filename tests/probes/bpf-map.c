// class: kernel-surface
// tries: make a BPF map of a kind that needs CAP_BPF whatever kernel.unprivileged_bpf_disabled says
// stopped-by: seccomp capabilities namespace.user
// source: CVE-2021-3490, bpf(2)
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    union bpf_attr map = {
        .map_type = BPF_MAP_TYPE_LRU_HASH, .key_size = sizeof(int), .value_size = sizeof(int), .max_entries = 1};
    if (syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map) < 0)
        refused("bpf(BPF_MAP_CREATE)");
    reached("a BPF map");
}
