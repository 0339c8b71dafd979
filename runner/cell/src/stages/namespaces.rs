//! The namespaces that clone3 could not give, and the ties to the launcher.

use std::os::fd::BorrowedFd;

use nix::sched::CloneFlags;
use rustix::event::{PollFd, PollFlags};

use crate::record::{At as _, Op, Stage, StageError, WORD_MAPPED};

/// A cgroup namespace rooted at the groups that were joined (cgroup_namespaces(7)).
pub(super) fn enter_cgroup_namespace() -> Result<(), StageError> {
    nix::sched::unshare(CloneFlags::CLONE_NEWCGROUP).at(Stage::Namespaces, Op::Unshare)
}

/// Waits for the launcher's word that both id maps are written.
pub(super) fn wait_until_mapped(control: BorrowedFd<'_>) -> Result<(), StageError> {
    wait_for(control, WORD_MAPPED, Stage::Namespaces)
}

/// Waits for one word; the end of the socket is the end of the launcher.
pub(super) fn wait_for(control: BorrowedFd<'_>, word: u8, stage: Stage) -> Result<(), StageError> {
    let mut byte = [0_u8; 1];
    let (got, _) = rustix::io::retry_on_intr(|| rustix::net::recv(control, &mut byte, rustix::net::RecvFlags::empty()))
        .at(stage, Op::WaitParent)?;
    if got == 1 && byte == [word] { Ok(()) } else { Err(StageError::new(stage, Op::WaitParent, nix::libc::EPIPE)) }
}

/// SIGKILL when the launcher ends. In a pid namespace getppid(2) is 0, so that the launcher's own death before this
/// call shows only at the socket.
pub(super) fn die_with_launcher(control: BorrowedFd<'_>) -> Result<(), StageError> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .at(Stage::Namespaces, Op::DeathSignal)?;
    let mut fds = [PollFd::from_borrowed_fd(control, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ready = rustix::event::poll(&mut fds, Some(&now)).at(Stage::Namespaces, Op::WaitParent)?;
    if fds.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR)) {
        return Err(StageError::new(Stage::Namespaces, Op::WaitParent, nix::libc::EPIPE));
    }
    Ok(())
}

/// SIGKILL when the init ends. After the change of ids, which clears it.
pub(super) fn die_with_init() -> Result<(), StageError> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .at(Stage::Namespaces, Op::DeathSignal)
}

/// Orphans of the tree come here to be reaped, as they do by themselves in a pid namespace (PR_SET_CHILD_SUBREAPER).
pub(super) fn adopt_orphans() -> Result<(), StageError> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).at(Stage::Namespaces, Op::Subreaper)
}

/// The host name inside. Not the host's.
pub(super) fn name_host() -> Result<(), StageError> {
    nix::unistd::sethostname("cell").at(Stage::Namespaces, Op::HostName)
}
