// class: memory
// tries: lock 1 MiB of memory
// stopped-by: rlimits
// source: mlock(2)
#define _GNU_SOURCE
#include <sys/mman.h>

#include "probe.h"

#define SIZE (1 << 20)

int main(void)
{
    void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        broken("mmap");
    if (mlock(memory, SIZE) < 0)
        refused("mlock");
    reached("%d bytes of locked memory", SIZE);
}
