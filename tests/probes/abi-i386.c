// class: other-abi
// tries: ask for its process id by the i386 way into the kernel (int 0x80)
// stopped-by: seccomp
// source: seccomp(2), firejail (32-bit system calls)
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "probe.h"

#define I386_GETPID 20

/* Where the kernel has no such way the instruction is a general protection fault. */
static void faulted(int signal)
{
    static const char line[] = "NOT-APPLICABLE this kernel has no int 0x80\n";
    (void)signal;
    if (write(1, line, sizeof line - 1) < 0)
        _exit(2);
    _exit(3);
}

int main(void)
{
    if (signal(SIGSEGV, faulted) == SIG_ERR)
        broken("signal");
    long result = I386_GETPID;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    if (result != getpid()) {
        errno = (int)-result;
        refused("int 0x80");
    }
    reached("the i386 ABI");
}
