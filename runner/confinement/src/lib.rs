//! How a long-lived part of ours shuts itself in: a root with one folder in it, Landlock for that folder, a user without
//! any privilege, and a list of the system calls that are left.
//!
//! Guarantees: [`confine`] returns only if each step was seen to hold, in this very process: what Landlock and the list
//! forbid is tried before and after, has to work before and to fail after. What a part may still do is the part's own
//! data; the order is here, once. Does not: confine cells (see `runner/cell`), know what the folder holds, go on after
//! an error: the process must then end.

mod calls;
mod error;
mod files;
mod tries;

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use toolcell_sys::{RootBind, Users, become_user, private_root, remain_user};

pub use calls::Calls;
pub use error::{Act, ConfinementError};
pub use files::{Level, restrict};
pub use landlock::{AccessFs, BitFlags};

/// Who the process is afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// This user and this group, in the user namespace that it is in.
    Become {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// The one that it is already, in a user namespace of its own.
    Remain,
}

/// What is left to a process.
#[derive(Debug)]
pub struct Confinement<'a> {
    /// The one folder that stays in reach.
    pub folder: BorrowedFd<'a>,
    /// Its name directly below the new root, without a slash.
    pub at: &'a str,
    /// Names in it that are covered.
    pub hidden: &'a [&'a str],
    /// What may be done to files and folders below it. What this kernel's Landlock does not know is not restricted.
    pub rights: BitFlags<AccessFs>,
    /// Who the process becomes.
    pub user: User,
    /// The system calls that are left.
    pub calls: &'a Calls,
}

/// What was reached.
#[derive(Debug)]
pub struct Confined {
    /// The folder, opened in the new root: nothing above it can be reached from it.
    pub folder: OwnedFd,
    /// What Landlock restricts on this kernel.
    pub landlock: Level,
}

/// Shuts the process in for good. It must have one thread, and CAP_SYS_ADMIN; the caller closes what else it holds of
/// the host's folders.
///
/// # Errors
/// [`ConfinementError`]; the process must then end.
pub fn confine(confinement: &Confinement<'_>) -> Result<Confined, ConfinementError> {
    let Confinement { folder, at, hidden, rights, user, calls } = *confinement;
    let bind = RootBind { source: folder, at, read_only: false, hidden };
    let users = if user == User::Remain { Users::Own } else { Users::Shared };
    private_root(&[bind], users).map_err(|source| ConfinementError::Root { source })?;
    let path = format!("/{at}");
    // While the parent can still be signalled, so that it can be seen that it no longer can.
    let landlock = restrict(&path, rights)?;
    match user {
        User::Become { uid, gid } => become_user(uid, gid),
        User::Remain => remain_user(),
    }
    .map_err(|source| ConfinementError::Privilege { source })?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path.as_str(), flags, Mode::empty())
        .map_err(|errno| ConfinementError::Folder { path, source: errno.into() })?;
    // Last: it leaves nothing of what the steps above needed.
    calls.leave_only()?;
    Ok(Confined { folder, landlock })
}
