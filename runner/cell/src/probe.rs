//! Whether cells can be had here at all, tried before anything is started: namespaces, a root of mounts, a fresh /proc,
//! Landlock. In a container each of these is refused by another default, and the error says by which.
//!
//! A child tries and ends; nothing is left of it. That it works here is no report about a cell: each cell is read back.

use std::io;
use std::os::fd::AsFd as _;

use nix::sched::CloneFlags;
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsmount, fsopen, mount_change, move_mount, unmount,
};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use toolcell_sys::{MountAttr, set_mount_attributes};

use crate::container;
use crate::stages::best_abi;

/// What a cell needs and cannot have here.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// clone(2) with all namespaces.
    #[error("this process may not make user namespaces, which every cell is in")]
    Namespaces {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A tmpfs as a root of its own.
    #[error("a cell's own mounts are refused within its namespaces")]
    Mounts {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A procfs of its own: the kernel refuses it to who sees /proc only in part (mount_too_revealing, fs/namespace.c).
    #[error("a cell's own /proc is refused, as parts of /proc are covered or read-only here")]
    Proc {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// landlock_create_ruleset(2).
    #[error("Landlock cannot be used, which landlock.fs needs")]
    Landlock,
    /// The child could not be made or did not tell.
    #[error("a process that tries what cells need did not end as it should")]
    Child {
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl ProbeError {
    /// What the operator can do about it, one sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Namespaces { source } if source.raw_os_error() == Some(nix::libc::ENOSPC) => {
                "allow more, as root of the machine: sysctl -w user.max_user_namespaces=15000".to_owned()
            }
            Self::Namespaces { .. } | Self::Mounts { .. } => format!(
                "start a container with {}; elsewhere look at sysctl user.max_user_namespaces and at the security modules",
                container::all()
            ),
            Self::Proc { .. } => format!(
                "start a container with {}; elsewhere unmount what covers parts of /proc",
                container::SYSTEM_PATHS
            ),
            Self::Landlock => format!(
                "boot a kernel of 5.13 or later with landlock in its list of security modules (lsm=); in a container \
                 also start it with {}",
                container::SECCOMP
            ),
            Self::Child { .. } => "look at the limits of this machine: processes, memory".to_owned(),
        }
    }
}

/// Tries what every cell needs.
///
/// # Errors
/// [`ProbeError`], which names the first thing that is refused.
pub fn probe() -> Result<(), ProbeError> {
    tried(own_root)?.map_err(|source| ProbeError::Mounts { source })?;
    tried(own_proc)?.map_err(|source| ProbeError::Proc { source })?;
    best_abi().map(drop).ok_or(ProbeError::Landlock)
}

/// Runs `work` in the namespaces of a cell.
fn tried(work: fn() -> Result<(), Errno>) -> Result<io::Result<()>, ProbeError> {
    let namespaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    // errno(3): all numbers are below 134, so that an exit code holds one.
    let child = toolcell_sys::clone_process(namespaces.bits(), None, || work().err().map_or(0, Errno::raw_os_error));
    let child =
        child.map_err(|error| ProbeError::Namespaces { source: io::Error::from_raw_os_error(error.errno()) })?;
    let reap = || waitid(WaitId::PidFd(child.pidfd.as_fd()), WaitIdOptions::EXITED);
    let status = rustix::io::retry_on_intr(reap).map_err(|errno| ProbeError::Child { source: errno.into() })?;
    match status.and_then(|status| status.exit_status()) {
        Some(0) => Ok(Ok(())),
        Some(errno) => Ok(Err(io::Error::from_raw_os_error(errno))),
        None => Err(ProbeError::Child { source: io::Error::other("it was killed") }),
    }
}

fn own_root() -> Result<(), Errno> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let root = file_system("tmpfs")?;
    move_mount(root.as_fd(), "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    let attr = MountAttr { read_only: true, ..MountAttr::default() };
    set_mount_attributes(root.as_fd(), attr, false)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    rustix::process::fchdir(root.as_fd())?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)
}

fn own_proc() -> Result<(), Errno> {
    file_system("proc").map(drop)
}

fn file_system(kind: &str) -> Result<std::os::fd::OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let attr = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attr)
}
