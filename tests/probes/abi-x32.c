// class: other-abi
// tries: ask for its process id by the number of the x32 ABI, which has bit 30 set
// stopped-by: seccomp
// source: seccomp(2)
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    if (syscall(0x40000000L | SYS_getpid) < 0)
        refused("getpid of x32");
    reached("the x32 ABI");
}
