// class: privilege
// tries: give a capability to a program of its own
// stopped-by: capabilities
// source: capabilities(7), CVE-2021-3493
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

int main(void)
{
    char path[] = "/tmp/probe-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        broken("mkstemp");
    unlink(path);
    struct vfs_cap_data capability = {.magic_etc = VFS_CAP_REVISION_2, .data = {{.permitted = 1 << CAP_SETPCAP}}};
    if (fsetxattr(fd, "security.capability", &capability, sizeof capability, 0) < 0)
        refused("setxattr(security.capability)");
    reached("a program with CAP_SETPCAP");
}
