// class: memory
// tries: make a file of huge pages, which no memory group counts
// stopped-by: seccomp
// source: memfd_create(2), kernel: hugetlb of cgroups
#define _GNU_SOURCE
#include <sys/mman.h>

#include "probe.h"

int main(void)
{
    if (memfd_create("huge", MFD_HUGETLB) < 0) {
        if (errno == EINVAL && !is_filtered())
            not_applicable("this kernel has no huge pages");
        refused("memfd_create(MFD_HUGETLB)");
    }
    reached("a file of huge pages");
}
