// class: kernel-surface
// tries: learn the handle of a folder that comes from the host, by which it can be opened past every mount tree
// stopped-by: seccomp
// source: CVE-2014-3519, name_to_handle_at(2)
#define _GNU_SOURCE
#include <fcntl.h>

#include "probe.h"

int main(void)
{
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } handle = {.head.handle_bytes = sizeof handle.bytes};
    int mount;
    if (name_to_handle_at(AT_FDCWD, "/usr", &handle.head, &mount, 0) < 0) {
        if (errno == EOPNOTSUPP)
            not_applicable("the file system of /usr has no handles");
        refused("name_to_handle_at");
    }
    reached("the handle of /usr, %u bytes", handle.head.handle_bytes);
}
