//! New processes: a bare clone3(2) for cells, and fork with exec and chosen descriptors for our own parts.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A child process, by its number and by a descriptor that cannot be reused.
#[derive(Debug)]
pub struct Child {
    /// Its number in our pid namespace.
    pub pid: rustix::process::Pid,
    /// Its pidfd, readable once it has ended (pidfd_open(2)).
    pub pidfd: OwnedFd,
}

/// Why no child was made.
#[derive(Debug)]
pub enum ForkError {
    /// The process has more than one thread: after a fork only async-signal-safe calls would be allowed.
    Threaded {
        /// How many threads were counted.
        threads: u64,
    },
    /// The threads could not be counted.
    Count {
        /// The error of /proc/self/task.
        source: io::Error,
    },
    /// clone3(2) failed.
    Clone {
        /// Its error.
        source: io::Error,
    },
}

impl std::fmt::Display for ForkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Threaded { threads } => write!(f, "cannot fork: the process has {threads} threads, expected 1"),
            Self::Count { source } => write!(f, "cannot fork: threads of /proc/self/task not countable: {source}"),
            Self::Clone { source } => write!(f, "clone3 failed: {source}"),
        }
    }
}

impl std::error::Error for ForkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Threaded { .. } => None,
            Self::Count { source } | Self::Clone { source } => Some(source),
        }
    }
}

impl ForkError {
    /// The errno behind it, EAGAIN-like faults of our own being EINVAL.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Threaded { .. } => libc::EINVAL,
            Self::Count { source } | Self::Clone { source } => source.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

/// `struct clone_args` of linux/sched.h, third version (88 bytes, Linux 5.7).
#[repr(C, align(8))]
#[derive(Debug, Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Size of the first version (Linux 5.3), which is all that is needed without a group.
const CLONE_ARGS_SIZE_VER0: usize = 64;

/// Makes a child that runs `main` and ends with its value, without exec. `namespaces` are CLONE_NEW* flags. With a
/// descriptor of a version 2 cgroup's directory the child is born in that group (CLONE_INTO_CGROUP, Linux 5.7), else
/// in that of this process.
///
/// Signal handlers are reset in the child (CLONE_CLEAR_SIGHAND). The memory is copied, not shared. Where clone3(2) is
/// refused with ENOSYS and no group is given, clone(2) is used instead. A panic in `main`
/// ends the child with code 125; it cannot unwind into the parent's code.
///
/// # Errors
/// [`ForkError`]: the process is threaded, or the kernel refused.
pub fn clone_process(
    namespaces: i32,
    cgroup: Option<BorrowedFd<'_>>,
    main: impl FnOnce() -> i32,
) -> Result<Child, ForkError> {
    require_single_thread()?;
    let mut pidfd: RawFd = -1;
    let namespaces =
        u64::try_from(namespaces).map_err(|source| ForkError::Clone { source: io::Error::other(source) })?;
    let mut args = CloneArgs {
        flags: namespaces | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: SIGCHLD,
        ..CloneArgs::default()
    };
    let mut size = CLONE_ARGS_SIZE_VER0;
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::try_from(cgroup.as_raw_fd())
            .map_err(|source| ForkError::Clone { source: io::Error::other(source) })?;
        size = size_of::<CloneArgs>();
    }
    // SAFETY: clone3(2) requires a valid clone_args of the given size, which `args` is at least (the first version is
    // its beginning), and a pidfd pointer to an int, which lives until after the call, as the borrowed group does.
    // Without CLONE_VM the child has its own copy of all memory, and as this process has one thread (checked above) no
    // lock is held by a thread that the child lacks. The kernel keeps neither pointer.
    let mut pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size) };
    let is_refused = pid < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS);
    if is_refused && cgroup.is_none() {
        pid = clone_as_before(namespaces, &mut pidfd);
    }
    if pid == 0 {
        let code = catch_unwind(AssertUnwindSafe(main)).unwrap_or(125);
        // SAFETY: _exit(2) ends only this process and runs no destructor of the parent's copied state.
        unsafe { libc::_exit(code) }
    }
    if pid < 0 {
        return Err(ForkError::Clone { source: io::Error::last_os_error() });
    }
    let number = i32::try_from(pid).map_err(|source| ForkError::Clone { source: io::Error::other(source) })?;
    // SAFETY: clone3 succeeded with CLONE_PIDFD, so the kernel has put a fresh descriptor into `pidfd` that nobody
    // else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    match rustix::process::Pid::from_raw(number) {
        Some(pid) => Ok(Child { pid, pidfd }),
        None => Err(ForkError::Clone { source: io::Error::other("clone3 returned no process number") }),
    }
}

const CLONE_PIDFD: u64 = 0x1000;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
const SIGCHLD: u64 = 17;

/// The same by clone(2), for where a container's filter answers ENOSYS to clone3 (Docker's does, so that libraries fall
/// back like this). CLONE_CLEAR_SIGHAND is not in its reach, so the child resets its handlers itself.
fn clone_as_before(namespaces: u64, pidfd: &mut RawFd) -> i64 {
    // SAFETY: on x86_64 clone(2) takes flags, stack, a pointer to an int (the pidfd, with CLONE_PIDFD), a second one that
    // is not used with these flags, and a TLS value that is not either. A stack of 0 without CLONE_VM means "go on with a
    // copy of this one", as fork(2) does. `pidfd` outlives the call and the kernel does not keep it.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            namespaces | CLONE_PIDFD | SIGCHLD,
            0_u64,
            std::ptr::from_mut(pidfd),
            0_u64,
            0_u64,
        )
    };
    if pid == 0 {
        clear_handlers();
    }
    pid
}

/// Default disposition for every signal that has a handler; what is ignored stays so (as CLONE_CLEAR_SIGHAND does).
fn clear_handlers() {
    for signal in 1..=64 {
        let mut now = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: sigaction(2) with a null new action only writes the old one to `now`, which is of its type; numbers
        // that cannot be asked for are EINVAL.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) };
        if asked == -1 {
            continue;
        }
        // SAFETY: the call above succeeded and has filled it.
        let mut now = unsafe { now.assume_init() };
        if now.sa_sigaction == libc::SIG_DFL || now.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        now.sa_sigaction = libc::SIG_DFL;
        now.sa_flags = 0;
        // SAFETY: the new disposition is SIG_DFL, so that no handler can run; the kernel copies the structure. It cannot
        // fail for a signal that has a handler.
        unsafe { libc::sigaction(signal, &raw const now, std::ptr::null_mut()) };
    }
}

/// The number of links of /proc/self/task is 2 and one per thread (proc(5)).
fn require_single_thread() -> Result<(), ForkError> {
    let task = rustix::fs::stat("/proc/self/task").map_err(|errno| ForkError::Count { source: errno.into() })?;
    match task.st_nlink.saturating_sub(2) {
        1 => Ok(()),
        threads => Err(ForkError::Threaded { threads }),
    }
}

/// Starts `program` with `args` (the first is its own name), an environment of exactly `env`, and exactly the
/// descriptors 0, 1, 2 and those of `fds`, each under its chosen number.
///
/// # Errors
/// [`ForkError`]: the process is threaded, or the kernel refused. A failed execve(2) shows as exit code 127.
pub fn spawn(
    program: &CStr,
    args: &[CString],
    env: &[CString],
    fds: &[(BorrowedFd<'_>, RawFd)],
) -> Result<Child, ForkError> {
    clone_process(0, None, || match reset_signals().and_then(|()| install(fds)) {
        Ok(()) => match nix::unistd::execve(program, args, env) {
            Ok(never) => match never {},
            Err(_errno) => 127,
        },
        Err(_error) => 126,
    })
}

/// Default dispositions for the signals that Rust's runtime ignores (SIGPIPE), and an empty signal mask: what a program
/// expects of whoever executes it. CLONE_CLEAR_SIGHAND resets handlers only, not what is ignored (clone(2)).
///
/// # Errors
/// EINVAL, which cannot happen for these signals.
pub fn reset_signals() -> io::Result<()> {
    reset_dispositions()?;
    nix::sys::signal::SigSet::empty().thread_set_mask()?;
    Ok(())
}

fn reset_dispositions() -> io::Result<()> {
    let default = nix::sys::signal::SigAction::new(
        nix::sys::signal::SigHandler::SigDfl,
        nix::sys::signal::SaFlags::empty(),
        nix::sys::signal::SigSet::empty(),
    );
    for signal in [nix::sys::signal::Signal::SIGPIPE, nix::sys::signal::Signal::SIGCHLD] {
        // SAFETY: the new disposition is SIG_DFL, so no handler of ours can run in a wrong context; the kernel copies
        // the structure.
        unsafe { nix::sys::signal::sigaction(signal, &default) }?;
    }
    Ok(())
}

/// Turns this process into `program`, with arguments, environment, descriptors and signal dispositions as for [`spawn`].
/// Blocked signals stay blocked, so that one that comes meanwhile waits for the new program. If it fails, `on_failure`
/// gets the error and the process ends with code 126: descriptors may be gone by then, so nothing of the caller can go on.
pub fn exec(
    program: &CStr,
    args: &[CString],
    env: &[CString],
    fds: &[(BorrowedFd<'_>, RawFd)],
    on_failure: impl FnOnce(io::Error),
) -> ! {
    match reset_dispositions().and_then(|()| install(fds)) {
        Ok(()) => match nix::unistd::execve(program, args, env) {
            Ok(never) => match never {},
            Err(errno) => on_failure(errno.into()),
        },
        Err(error) => on_failure(error),
    }
    // SAFETY: _exit(2) ends the process and runs no destructor, so that no descriptor that `install` closed or replaced
    // is closed again.
    unsafe { libc::_exit(126) }
}

/// Puts each descriptor under its number and closes all others from 3 up. Only right before exec.
fn install(fds: &[(BorrowedFd<'_>, RawFd)]) -> io::Result<()> {
    // First out of the way of every wanted number, so that no dup2 overwrites a source.
    let clear = fds.iter().map(|(_, to)| *to).max().unwrap_or(2).saturating_add(1).max(64);
    let mut parked = Vec::with_capacity(fds.len());
    for (from, to) in fds {
        let copy = rustix::io::fcntl_dupfd_cloexec(from, clear)?;
        parked.push((copy, *to));
    }
    for (copy, to) in &parked {
        // SAFETY: dup2(2) takes two integers. The target number is one that the program to be executed expects; what
        // was open there belongs to the parent's copied table and is not used by this child any more.
        let done = unsafe { libc::dup2(copy.as_raw_fd(), *to) };
        if done == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    let wanted: Vec<RawFd> = parked.iter().map(|(_, to)| *to).collect();
    drop(parked);
    for number in 3..clear {
        if !wanted.contains(&number) {
            // SAFETY: close(2) takes an integer; EBADF for what is not open is expected. This child executes another
            // program or ends: no `OwnedFd` of the copied parent state is dropped here (see `clone_process`).
            unsafe { libc::close(number) };
        }
    }
    super::close_from(clear)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    use std::os::fd::AsFd as _;

    // The test runner starts one process per test, but the harness inside it has a second thread: forking is refused
    // here, and the successful side is shown by the end-to-end suite, which starts every part through `spawn`.
    #[test]
    fn a_threaded_process_is_refused() {
        let waiting = std::thread::spawn(|| std::thread::park_timeout(std::time::Duration::from_secs(5)));
        let refused = clone_process(0, None, || 0);
        waiting.thread().unpark();
        waiting.join().unwrap();
        assert!(matches!(refused, Err(ForkError::Threaded { threads }) if threads >= 2));
    }

    #[test]
    fn a_pidfd_of_a_process_that_is_no_child_cannot_be_waited_for() {
        let pidfd =
            rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).unwrap();
        assert!(waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_err());
    }
}
