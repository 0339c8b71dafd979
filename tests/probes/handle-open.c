// class: kernel-surface
// tries: open the root folder of the host's file system by its handle, from a descriptor of /usr
// stopped-by: seccomp capabilities namespace.user
// source: CVE-2014-3519 ("Shocker"), open_by_handle_at(2)
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "probe.h"

/* Of ext4 all is known before: the kind of its handles, and number and generation of its root folder. */
#define FILEID_INO32_GEN 1
#define EXT4_ROOT 2

int main(void)
{
    struct statfs system;
    int usr = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (usr < 0 || fstatfs(usr, &system) < 0)
        broken("/usr");
    if (system.f_type != EXT4_SUPER_MAGIC)
        not_applicable("/usr does not lie on ext4");
    struct {
        struct file_handle head;
        uint32_t inode, generation;
    } root = {.head.handle_bytes = 8, .head.handle_type = FILEID_INO32_GEN, .inode = EXT4_ROOT};
    struct stat found;
    int dir = open_by_handle_at(usr, &root.head, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        refused("open_by_handle_at");
    if (fstat(dir, &found) < 0 || found.st_ino != EXT4_ROOT)
        stopped("open_by_handle_at: another file");
    reached("the root folder of the host's file system");
}
