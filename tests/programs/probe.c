/* probe DIR HOST_PID ABSTRACT PATH_SOCKET FILE INIT_PID MOUNTED_SOCKET
 *
 * Tries what must not work in a cell, one act after the other, each in a child of its own, and prints one line per act:
 * its name and `ok`, the errno as a number, or `signal N`. Run on the host as root the same acts get through, which is
 * the positive control. Every act is harmless there: it undoes itself, works on DIR, or has arguments that the kernel
 * refuses after the permission check.
 *   DIR          a directory to work in
 *   HOST_PID     a process on the host that must not be reachable
 *   ABSTRACT     an abstract socket that somebody on the host listens on
 *   PATH_SOCKET  a socket in the file system of the host, likewise
 *   FILE         a file on the host
 *   INIT_PID     the cell's init; on the host a process of the same user instead of it
 *   MOUNTED_SOCKET  a socket of the host in a mount of the cell's, if it has mounts */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *dir, *abstract_name, *path_socket, *host_file, *mounted_socket;
static pid_t host_pid, init_pid;

static int said(long result)
{
    return result < 0 ? errno : 0;
}

static const char *in_dir(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int opens(const char *path, int flags)
{
    return said(open(path, flags | O_CLOEXEC, 0600));
}

/* files */

static int write_usr(void)
{
    int error = opens("/usr/.toolcell-probe", O_CREAT | O_WRONLY);
    unlink("/usr/.toolcell-probe");
    return error;
}

static int write_etc(void)
{
    return opens("/etc/passwd", O_WRONLY);
}

static int write_dir(void)
{
    int error = opens(in_dir("file"), O_CREAT | O_WRONLY);
    unlink(in_dir("file"));
    return error;
}

static int read_own_environ(void)
{
    return opens("/proc/self/environ", O_RDONLY);
}

static int opens_of_init(const char *name, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)init_pid, name);
    return opens(path, flags);
}

static int read_init_environ(void)
{
    return opens_of_init("environ", O_RDONLY);
}

static int read_init_memory(void)
{
    return opens_of_init("mem", O_RDONLY);
}

static int read_init_program(void)
{
    return opens_of_init("exe", O_RDONLY);
}

static int list_init_descriptors(void)
{
    return opens_of_init("fd", O_RDONLY | O_DIRECTORY);
}

static int enter_init_root(void)
{
    return opens_of_init("root", O_RDONLY | O_DIRECTORY);
}

static int write_core_pattern(void)
{
    return opens("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static int write_hostname_file(void)
{
    return opens("/proc/sys/kernel/hostname", O_WRONLY);
}

static int write_sysrq(void)
{
    return opens("/proc/sysrq-trigger", O_WRONLY);
}

static int write_own_uid_map(void)
{
    return opens("/proc/self/uid_map", O_WRONLY);
}

static int list_sys(void)
{
    return opens("/sys/kernel", O_RDONLY | O_DIRECTORY);
}

static int list_cgroups(void)
{
    return opens("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
}

static int read_kmsg(void)
{
    return opens("/dev/kmsg", O_RDONLY | O_NONBLOCK);
}

static int read_host_file(void)
{
    return opens(host_file, O_RDONLY);
}

static int read_by_handle(void)
{
    struct { struct file_handle head; char bytes[128]; } handle = {.head.handle_bytes = 128};
    int mount_id;
    if (name_to_handle_at(AT_FDCWD, dir, &handle.head, &mount_id, 0) != 0)
        return errno;
    int at = open(dir, O_RDONLY | O_DIRECTORY);
    return said(open_by_handle_at(at, &handle.head, O_RDONLY));
}

static int make_device(void)
{
    int error = said(mknod(in_dir("null"), S_IFCHR | 0600, makedev(1, 3)));
    unlink(in_dir("null"));
    return error;
}

/* mounts and namespaces */

static int new_mounts(void)
{
    return said(unshare(CLONE_NEWNS));
}

static int mount_tmpfs(void)
{
    if (unshare(CLONE_NEWNS) == 0)
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    return said(mount("none", dir, "tmpfs", 0, NULL));
}

static int remount_root(void)
{
    if (unshare(CLONE_NEWNS) == 0)
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    return said(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int unmount_proc(void)
{
    if (unshare(CLONE_NEWNS) == 0)
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    return said(umount2("/proc", MNT_DETACH));
}

static int change_root(void)
{
    return said(chroot("/"));
}

static int pivot(void)
{
    return said(syscall(SYS_pivot_root, "/nowhere", "/nowhere"));
}

static int open_file_system(void)
{
    return said(syscall(SYS_fsopen, "tmpfs", 0));
}

static int clone_tree(void)
{
    return said(syscall(SYS_open_tree, AT_FDCWD, "/", 1));
}

static int move_a_mount(void)
{
    return said(syscall(SYS_move_mount, -1, "", -1, "", 0));
}

static int set_mount_attributes(void)
{
    return said(syscall(SYS_mount_setattr, -1, "", 0, NULL, 0));
}

static int new_user(void)
{
    return said(unshare(CLONE_NEWUSER));
}

static int new_network(void)
{
    return said(unshare(CLONE_NEWNET));
}

static int clone_new_user(void)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    return said(child);
}

static int clone_three(void)
{
    uint64_t args[11] = {0};
    args[4] = SIGCHLD;
    long child = syscall(SYS_clone3, args, sizeof args);
    if (child == 0)
        _exit(0);
    return said(child);
}

static int plain_fork(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return said(child);
}

static int join_namespace(void)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY);
    return said(setns(fd, CLONE_NEWUTS));
}

/* sockets */

static int family(int number)
{
    return said(socket(number, number == AF_PACKET || number == AF_NETLINK ? SOCK_RAW : SOCK_STREAM, 0));
}

static int socket_unix(void)
{
    return family(AF_UNIX);
}

static int socket_inet(void)
{
    return family(AF_INET);
}

static int socket_inet6(void)
{
    return family(AF_INET6);
}

static int socket_inet_datagram(void)
{
    return said(socket(AF_INET, SOCK_DGRAM, 0));
}

static int socket_inet_high_bits(void)
{
    return said(syscall(SYS_socket, 0x100000000UL | AF_INET, SOCK_STREAM, 0));
}

static int socket_netlink(void)
{
    return family(AF_NETLINK);
}

static int socket_packet(void)
{
    return family(AF_PACKET);
}

static int connect_abstract(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, abstract_name, strlen(abstract_name));
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(abstract_name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return said(connect(fd, (struct sockaddr *)&address, length));
}

static int connect_path(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path_socket, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return said(connect(fd, (struct sockaddr *)&address, sizeof address));
}

static int connect_to_self(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, "\0toolcell-probe-self", 20);
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 20;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0)
        return errno;
    return said(connect(fd, (struct sockaddr *)&address, length));
}

static int connect_mounted(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, mounted_socket, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return said(connect(fd, (struct sockaddr *)&address, sizeof address));
}

static int send_to_mounted(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, mounted_socket, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0)
        return errno;
    /* A stream listens there: the kernel finds it and says EPROTOTYPE. */
    return said(sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof address));
}

static int pair_of_sockets(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return errno;
    return said(write(ends[0], "x", 1));
}

static int attach_filter(void)
{
    struct sock_filter all = {BPF_RET | BPF_K, 0, 0, 0xffff};
    struct sock_fprog program = {1, &all};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return said(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
}

/* other processes */

static int signal_host(void)
{
    return said(kill(host_pid, 0));
}

static int signal_init(void)
{
    return said(kill(init_pid, 0));
}

static int trace_init(void)
{
    int error = said(ptrace(PTRACE_SEIZE, init_pid, 0, 0));
    if (error == 0)
        ptrace(PTRACE_DETACH, init_pid, 0, 0);
    return error;
}

static pid_t waiting_child(void)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    return child;
}

static int trace_child(void)
{
    pid_t child = waiting_child();
    int error = said(ptrace(PTRACE_SEIZE, child, 0, 0));
    kill(child, SIGKILL);
    return error;
}

static int read_child_memory(void)
{
    static char here[8];
    struct iovec iov = {here, sizeof here};
    pid_t child = waiting_child();
    int error = said(process_vm_readv(child, &iov, 1, &iov, 1, 0));
    kill(child, SIGKILL);
    return error;
}

static int take_descriptor(void)
{
    pid_t child = waiting_child();
    int fd = syscall(SYS_pidfd_open, child, 0);
    int error = fd < 0 ? errno : said(syscall(SYS_pidfd_getfd, fd, 0, 0));
    kill(child, SIGKILL);
    return error;
}

static int signal_child(void)
{
    return said(kill(waiting_child(), SIGKILL));
}

/* the kernel's wide surface */

static int ring(void)
{
    struct io_uring_params params = {0};
    return said(syscall(SYS_io_uring_setup, 4, &params));
}

static int key_add(void)
{
    return said(syscall(SYS_add_key, "user", "toolcell-probe", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

static int key_read(void)
{
    return said(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1));
}

static int bpf(void)
{
    return said(syscall(SYS_bpf, 9999, NULL, 0));
}

static int perf(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK};
    return said(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int fault_handler(void)
{
    return said(syscall(SYS_userfaultfd, 1 /* user mode only */));
}

static int load_module(void)
{
    return said(syscall(SYS_init_module, NULL, 0, ""));
}

static int load_kernel(void)
{
    return said(syscall(SYS_kexec_load, 0, 999999, NULL, 0));
}

static int reboot_machine(void)
{
    return said(syscall(SYS_reboot, 0, 0, 0, NULL));
}

static int swap_on(void)
{
    return said(syscall(SYS_swapon, "/nowhere", 0));
}

static int set_clock(void)
{
    struct timespec bad = {-1, -1};
    return said(syscall(SYS_clock_settime, CLOCK_REALTIME, &bad));
}

static int set_host_name(void)
{
    return said(syscall(SYS_sethostname, "x", -1));
}

static int account(void)
{
    return said(syscall(SYS_acct, "/nowhere"));
}

static int kernel_log(void)
{
    return said(syscall(SYS_syslog, 10 /* size of the buffer */, NULL, 0));
}

static int watch_everything(void)
{
    return said(syscall(SYS_fanotify_init, 0, O_RDONLY));
}

static int ports(void)
{
    return said(syscall(SYS_ioperm, 0x80, 1, 1));
}

static int install_filter(void)
{
    struct sock_filter all = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog program = {1, &all};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return said(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static int huge_pages(void)
{
    void *at = mmap(NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    return at == MAP_FAILED ? errno : 0;
}

static int watch_files(void)
{
    int fd = inotify_init1(0);
    return said(inotify_add_watch(fd, dir, IN_CREATE));
}

static int take_lease(void)
{
    int fd = open(in_dir("lease"), O_CREAT | O_RDWR, 0600);
    int error = said(fcntl(fd, F_SETLEASE, F_WRLCK));
    unlink(in_dir("lease"));
    return error;
}

static int lock_file(void)
{
    int fd = open(in_dir("lock"), O_CREAT | O_RDWR, 0600);
    int error = said(flock(fd, LOCK_EX));
    unlink(in_dir("lock"));
    return error;
}

static int set_core_limit(void)
{
    struct rlimit limit = {0, 0};
    return said(setrlimit(RLIMIT_CORE, &limit));
}

static int lower_stack_limit(void)
{
    struct rlimit limit = {1 << 20, 1 << 20};
    return said(setrlimit(RLIMIT_STACK, &limit));
}

static int other_personality(void)
{
    return said(personality(PER_LINUX32));
}

/* identity */

static int become_root(void)
{
    return said(syscall(SYS_setresuid, 0, 0, 0));
}

static int become_root_group(void)
{
    return said(syscall(SYS_setresgid, 0, 0, 0));
}

static int add_groups(void)
{
    gid_t group = 0;
    return said(syscall(SYS_setgroups, 1, &group));
}

/* terminals */

static int terminal(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (master < 0)
        return 0; /* standard input, whatever it is */
    unlockpt(master);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    return slave < 0 ? 0 : slave;
}

static int push_input(void)
{
    return said(ioctl(terminal(), TIOCSTI, "x"));
}

static int push_input_high_bits(void)
{
    return said(syscall(SYS_ioctl, terminal(), 0x100000000UL | TIOCSTI, "x"));
}

static int ask_pipe(void)
{
    int ends[2], n;
    if (pipe(ends) != 0)
        return errno;
    return said(ioctl(ends[0], FIONREAD, &n));
}

/* other ways into the kernel */

static int old_abi(void)
{
#ifdef __x86_64__
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20 /* getpid of i386 */) : "memory");
    return result < 0 ? (int)-result : 0;
#else
    return ENOSYS;
#endif
}

static int unknown_number(void)
{
    return said(syscall(5000));
}

struct act {
    const char *name;
    int (*run)(void);
};

#define ACT(name) {#name, name}

static const struct act acts[] = {
    ACT(write_usr), ACT(write_etc), ACT(write_dir), ACT(read_own_environ), ACT(read_init_environ),
    ACT(read_init_memory), ACT(read_init_program), ACT(list_init_descriptors), ACT(enter_init_root),
    ACT(write_core_pattern), ACT(write_hostname_file), ACT(write_sysrq), ACT(write_own_uid_map),
    ACT(list_sys), ACT(list_cgroups), ACT(read_kmsg), ACT(read_host_file), ACT(read_by_handle),
    ACT(make_device), ACT(new_mounts), ACT(mount_tmpfs), ACT(remount_root), ACT(unmount_proc), ACT(change_root),
    ACT(pivot), ACT(open_file_system), ACT(clone_tree), ACT(move_a_mount), ACT(set_mount_attributes), ACT(new_user),
    ACT(new_network), ACT(clone_new_user), ACT(clone_three), ACT(plain_fork), ACT(join_namespace), ACT(socket_unix),
    ACT(socket_inet), ACT(socket_inet6), ACT(socket_inet_datagram), ACT(socket_inet_high_bits), ACT(socket_netlink),
    ACT(socket_packet), ACT(connect_abstract), ACT(connect_path), ACT(connect_to_self), ACT(connect_mounted), ACT(send_to_mounted), ACT(pair_of_sockets), ACT(attach_filter), ACT(signal_host),
    ACT(signal_init), ACT(trace_init), ACT(trace_child), ACT(read_child_memory), ACT(take_descriptor),
    ACT(signal_child), ACT(ring), ACT(key_add), ACT(key_read), ACT(bpf), ACT(perf), ACT(fault_handler),
    ACT(load_module), ACT(load_kernel), ACT(reboot_machine), ACT(swap_on), ACT(set_clock), ACT(set_host_name),
    ACT(account), ACT(kernel_log), ACT(watch_everything), ACT(ports), ACT(install_filter), ACT(huge_pages), ACT(watch_files), ACT(take_lease), ACT(lock_file),
    ACT(set_core_limit), ACT(lower_stack_limit), ACT(other_personality), ACT(become_root),
    ACT(become_root_group), ACT(add_groups), ACT(push_input), ACT(push_input_high_bits),
    ACT(ask_pipe), ACT(old_abi), ACT(unknown_number),
};

static void attempt(const struct act *act)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(act->run());
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        printf("%s signal %d\n", act->name, WTERMSIG(status));
    else if (WEXITSTATUS(status) == 0)
        printf("%s ok\n", act->name);
    else
        printf("%s %d\n", act->name, WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 64;
    dir = argv[1];
    host_pid = atoi(argv[2]);
    abstract_name = argv[3];
    path_socket = argv[4];
    host_file = argv[5];
    init_pid = atoi(argv[6]);
    mounted_socket = argv[7];
    for (size_t n = 0; n < sizeof acts / sizeof acts[0]; n++)
        attempt(&acts[n]);
    return 0;
}
