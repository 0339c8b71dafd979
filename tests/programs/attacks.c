/* attacks DIR
 *
 * Tries what would cost the whole machine, or start a program on the host: core limits, compiled filters, huge pages,
 * watches, waiting for all disks; and the allowed neighbour of each. One act after the other, each in a child of its own;
 * one line per act: its name and `ok` or the errno as a number. Harmless outside as root, which is the control.
 *   DIR   a directory to work in */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif
#define HIGH_BIT (1L << 32)

static const char *dir;

static int said(long result)
{
    return result < 0 ? errno : 0;
}

static int file(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/file-XXXXXX", dir);
    int fd = mkstemp(path);
    unlink(path);
    return fd;
}

static const struct rlimit none = {0, 0};

static int set_core(void) { return said(syscall(SYS_setrlimit, RLIMIT_CORE, &none)); }
static int set_core_high_bits(void) { return said(syscall(SYS_setrlimit, HIGH_BIT | RLIMIT_CORE, &none)); }
static int change_core(void) { return said(syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL)); }
static int change_core_by_name(void) { return said(syscall(SYS_prlimit64, getpid(), RLIMIT_CORE, &none, NULL)); }
static int change_core_of_parent(void) { return said(syscall(SYS_prlimit64, getppid(), RLIMIT_CORE, &none, NULL)); }
static int change_core_high_bits(void)
{
    return said(syscall(SYS_prlimit64, 0, HIGH_BIT | RLIMIT_CORE, &none, NULL));
}

/* A pointer whose lower half is nothing. */
static int change_core_low_half_null(void)
{
    void *at = mmap((void *)HIGH_BIT, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (at == MAP_FAILED)
        return 999;
    memcpy(at, &none, sizeof none);
    return said(syscall(SYS_prlimit64, 0, RLIMIT_CORE, at, NULL));
}

static int ask_core(void)
{
    struct rlimit now;
    return said(syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &now));
}

static int lower_files(void)
{
    struct rlimit few = {8, 8}, now;
    if (syscall(SYS_setrlimit, RLIMIT_NOFILE, &few) < 0)
        return errno;
    return getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_max == 8 ? 0 : 999;
}

static int lower_file_size(void)
{
    struct rlimit small = {4096, 4096};
    return said(syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &small, NULL));
}

static struct sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
static struct sock_fprog program = {1, all};

static int option(long level, int name, const void *value, socklen_t size)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd < 0 ? 999 : said(syscall(SYS_setsockopt, fd, level, name, value, size));
}

static int filter_socket(void) { return option(SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program); }
static int filter_high_bits(void) { return option(HIGH_BIT | SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program); }
static int filter_socket_by_descriptor(void)
{
    int no_program = -1;
    return option(SOL_SOCKET, SO_ATTACH_BPF, &no_program, sizeof no_program);
}

static int filter_port(void) { return option(SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program); }
static int other_option(void)
{
    int size = 8192;
    return option(SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static int filter_calls(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return said(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static int filter_calls_older_way(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return said(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static int ask_filters(void)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    return said(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
}

static int set_name(void) { return said(prctl(PR_SET_NAME, "other")); }

static int map(int flags)
{
    void *at = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return at == MAP_FAILED ? errno : 0;
}

static int map_huge(void) { return map(MAP_HUGETLB); }
static int map_huge_of_a_size(void) { return map(MAP_HUGETLB | (21 << 26)); }
static int map_plain(void) { return map(0); }
static int memory_file_huge(void) { return said(memfd_create("huge", MFD_HUGETLB)); }
static int memory_file_huge_sealable(void) { return said(memfd_create("huge", MFD_HUGETLB | MFD_ALLOW_SEALING)); }
static int memory_file_plain(void) { return said(memfd_create("plain", MFD_CLOEXEC)); }

static int segment(int flags)
{
    int id = shmget(IPC_PRIVATE, 2 << 20, IPC_CREAT | 0600 | flags);
    if (id < 0)
        return errno;
    return said(shmctl(id, IPC_RMID, NULL));
}

static int segment_huge(void) { return segment(SHM_HUGETLB); }
static int segment_plain(void) { return segment(0); }

static int watch(void)
{
    int fd = inotify_init1(IN_CLOEXEC);
    return fd < 0 ? 999 : said(inotify_add_watch(fd, dir, IN_ALL_EVENTS));
}

static int watch_nothing(void) { return said(inotify_init1(IN_CLOEXEC)); }

static int sync_everything(void) { return said(syscall(SYS_sync)); }
static int sync_file_system(void) { return said(syncfs(file())); }
static int sync_file(void) { return said(fsync(file())); }
static int sync_data(void) { return said(fdatasync(file())); }

#define ACT(name) {#name, name}
static const struct {
    const char *name;
    int (*run)(void);
} acts[] = {
    ACT(set_core), ACT(set_core_high_bits), ACT(change_core), ACT(change_core_by_name), ACT(change_core_high_bits),
    ACT(change_core_low_half_null), ACT(ask_core), ACT(lower_files), ACT(lower_file_size), ACT(filter_socket),
    ACT(filter_high_bits), ACT(filter_socket_by_descriptor), ACT(filter_port), ACT(other_option), ACT(filter_calls),
    ACT(filter_calls_older_way), ACT(ask_filters), ACT(set_name), ACT(map_huge), ACT(map_huge_of_a_size), ACT(map_plain),
    ACT(memory_file_huge), ACT(memory_file_huge_sealable), ACT(memory_file_plain), ACT(segment_huge), ACT(segment_plain),
    ACT(watch), ACT(watch_nothing), ACT(sync_everything), ACT(sync_file_system), ACT(sync_file), ACT(sync_data),
    ACT(change_core_of_parent),
};

static void core(const char *when)
{
    struct rlimit now;
    getrlimit(RLIMIT_CORE, &now);
    printf("%s %lld %lld\n", when, (long long)now.rlim_cur, (long long)now.rlim_max);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    dir = argv[1];
    core("core_before");
    for (size_t n = 0; n < sizeof acts / sizeof acts[0]; n++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int error = acts[n].run();
            if (error == 0)
                printf("%s ok\n", acts[n].name);
            else
                printf("%s %d\n", acts[n].name, error);
            fflush(stdout);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status))
            printf("%s signal %d\n", acts[n].name, WTERMSIG(status));
    }
    core("core_after");
    return 0;
}
