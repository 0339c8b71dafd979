//! Why the launcher ended, or could not begin.

use std::io;

use crate::cgroup::CgroupError;
use crate::link::LinkError;

/// The launcher's own faults. A fault of one cell is a message to the daemon, never one of these.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// A system call that must work did not.
    #[error("the launcher cannot {what}")]
    Call {
        /// Which.
        what: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Control groups cannot be used.
    #[error("control groups cannot be used")]
    Groups {
        /// Why.
        #[source]
        source: CgroupError,
    },
    /// The embedded filters do not compile.
    #[error("the system call filters cannot be used: {detail}")]
    Filters {
        /// Why.
        detail: String,
    },
    /// The kernel has no Landlock.
    #[error("this kernel has no Landlock, which landlock.fs needs")]
    NoLandlock,
    /// The launcher's own state could not be read.
    #[error("the launcher cannot read its own namespaces: {detail}")]
    Outside {
        /// Why.
        detail: String,
    },
    /// The daemon's socket is of no use.
    #[error("the link to the daemon broke")]
    Link {
        /// Why.
        #[source]
        source: LinkError,
    },
    /// The daemon sent what is no message.
    #[error("the daemon sent what is no message")]
    Decode {
        /// postcard's word.
        #[source]
        source: postcard::Error,
    },
    /// The daemon or the signer ended.
    #[error("the {part} ended: exit code {code:?}, signal {signal:?}")]
    PartEnded {
        /// Which part.
        part: &'static str,
        /// Its exit code, if it exited.
        code: Option<i32>,
        /// Its signal, if one killed it.
        signal: Option<i32>,
    },
    /// A second signal asked for an end without waiting.
    #[error("asked twice to end: what ran was killed")]
    EndedTwice,
}

impl LauncherError {
    /// What the operator can do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Call { .. } | Self::Outside { .. } => "start as root on Linux 5.14 or later with /proc mounted",
            Self::Groups { source } => source.remedy(),
            Self::Filters { .. } | Self::Decode { .. } => "this is a fault of the program: report it with its version",
            Self::NoLandlock => "boot a kernel of 5.13 or later with landlock in its list of security modules (lsm=)",
            Self::Link { .. } | Self::PartEnded { .. } => "see the log above for the part that ended, then start again",
            Self::EndedTwice => "nothing to do; the next start settles what was open",
        }
    }
}
