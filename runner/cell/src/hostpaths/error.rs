//! Why a host path does not go into a cell.

use std::io;
use std::path::PathBuf;

/// Why a host path does not go into a cell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostPathError {
    /// The ids could not be taken or given back.
    #[error("cannot open host paths under uid {uid}")]
    Ids {
        /// Whose.
        uid: u32,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// It cannot be opened under these ids.
    #[error("cannot open it as uid {uid}")]
    Open {
        /// Whose ids.
        uid: u32,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// It can be named but not read under these ids.
    #[error("uid {uid} may not read it")]
    Unreadable {
        /// Whose ids.
        uid: u32,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Neither a directory nor a regular file.
    #[error("it is a {kind}, expected a directory or a regular file")]
    Kind {
        /// What it is.
        kind: &'static str,
    },
    /// It is on a file system of the kernel's own, or is one of /proc, /sys, /dev.
    #[error("it is part of a kernel file system")]
    KernelFs,
    /// It is, lies under or contains a directory of the runner's own.
    #[error("it is, lies under or contains a directory of toolcell's own")]
    OwnDirectory,
    /// It leads out of what the policy allows.
    #[error("it leads to {real}, which is not in {within}, the folder that the policy allows")]
    Outside {
        /// Where it leads.
        real: PathBuf,
        /// The folder.
        within: String,
    },
    /// Only its owner or group may read it, and it cannot be shown as the tool's.
    #[error(
        "only its owner or group may read it (mode {mode:04o}), and it cannot be shown to the tool, which is another user"
    )]
    Private {
        /// Its permission bits.
        mode: u32,
    },
    /// Another file system is mounted below it.
    #[error("another file system is mounted at {point}, below it: mount that by itself")]
    Submount {
        /// Where.
        point: PathBuf,
    },
    /// The launcher is an ordinary user's and somebody else asks.
    #[error("a launcher without root opens paths as uid {own} alone, not as uid {uid}")]
    Foreign {
        /// Who asks.
        uid: u32,
        /// Whose the launcher is.
        own: u32,
    },
    /// A call on the opened path failed.
    #[error("cannot {action} it")]
    Call {
        /// What was tried.
        action: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}

impl HostPathError {
    /// The errno behind it; EPERM where it is our own refusal.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Self::Ids { source, .. }
            | Self::Open { source, .. }
            | Self::Unreadable { source, .. }
            | Self::Call { source, .. } => source.raw_os_error().unwrap_or(nix::libc::EIO),
            Self::Private { .. } => nix::libc::EACCES,
            Self::Kind { .. }
            | Self::KernelFs
            | Self::OwnDirectory
            | Self::Outside { .. }
            | Self::Submount { .. }
            | Self::Foreign { .. } => nix::libc::EPERM,
        }
    }

    /// Whether the path is simply not there.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

pub(super) type Result<T> = std::result::Result<T, HostPathError>;

pub(super) fn call<T, E: Into<io::Error>>(action: &'static str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|source| HostPathError::Call { action, source: source.into() })
}
