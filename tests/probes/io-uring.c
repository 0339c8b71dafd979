// class: io-uring
// tries: make a ring through which calls are made that no filter sees
// stopped-by: seccomp
// source: io_uring_setup(2), LWN 1054225
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    struct io_uring_params params = {0};
    if (syscall(SYS_io_uring_setup, 1, &params) < 0) {
        /* kernel.io_uring_disabled, which is a setting of the machine. */
        if (errno == EPERM && !is_filtered())
            not_applicable("kernel.io_uring_disabled refuses it to everybody here");
        refused("io_uring_setup");
    }
    reached("an io_uring");
}
