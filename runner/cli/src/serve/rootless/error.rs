//! Why a start without root is not possible, and which setting of the machine forbids it.

use std::io;

use toolcell_doctor::host_facts;
use toolcell_doctor::remedies::{self, Cause};

/// Why nothing can be served without root here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RootlessError {
    /// No place for the socket.
    #[error("XDG_RUNTIME_DIR is not set to a folder: there is no place for a socket of your own")]
    NoRuntime {
        /// Whether the folder that systemd makes at a login is there all the same.
        has_login: bool,
    },
    /// No place for the state.
    #[error("neither XDG_STATE_HOME nor HOME is set to a folder: there is no place for your key and ledger")]
    NoHome,
    /// The socket would be open to others.
    #[error("--socket-mode {mode:04o} lets others connect, and without root an instance serves its own user alone")]
    SocketMode {
        /// The mode that was asked for.
        mode: u32,
    },
    /// Ids are named, and an ordinary user has none to choose from.
    #[error(
        "--uid-base {base} is for root: without root the ids of cells are the user's own in /etc/subuid and /etc/subgid"
    )]
    UidBase {
        /// The first id that was asked for.
        base: u32,
    },
    /// The kernel refuses user namespaces, or everything in them.
    #[error("this machine does not let an ordinary user have a user namespace: {}", cause.why)]
    Forbidden {
        /// Which setting forbids it, and what to do about it.
        cause: Cause,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A process for newuidmap could not be started.
    #[error("newuidmap and newgidmap cannot be started")]
    Helper {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A map is not what was asked for.
    #[error("{file} reads back as {got:?}, expected {wanted:?}")]
    Map {
        /// Which file.
        file: &'static str,
        /// What was asked for.
        wanted: String,
        /// What is there.
        got: String,
    },
}

impl RootlessError {
    /// What to do next, one sentence.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::NoRuntime { has_login: true } => "export XDG_RUNTIME_DIR=/run/user/$(id -u)".to_owned(),
            Self::NoRuntime { has_login: false } => {
                "mkdir -p -m 700 ~/.toolcell-run && export XDG_RUNTIME_DIR=~/.toolcell-run, or name another folder of your own \
                 that nobody else can change (a login through systemd makes one); or start it as root"
                    .to_owned()
            }
            Self::NoHome => "export HOME, or XDG_STATE_HOME, or name a folder with --state".to_owned(),
            Self::SocketMode { .. } => "leave it out, or serve others from an instance that root starts".to_owned(),
            Self::UidBase { .. } => "leave it out, or start toolcell as root".to_owned(),
            Self::Forbidden { cause, .. } => cause.remedy.clone(),
            Self::Helper { .. } => "look at the limits of this user: processes, memory".to_owned(),
            Self::Map { .. } => "look at the user's lines in /etc/subuid and /etc/subgid".to_owned(),
        }
    }
}

/// Refuses where a setting alone tells that nothing will come of it, before anything is made.
pub(in crate::serve) fn check_settings() -> Result<(), RootlessError> {
    let host = host_facts();
    let is_none = |name: &str| host.setting(name) == Some("0");
    if is_none("user.max_user_namespaces") || is_none("kernel.unprivileged_userns_clone") {
        return Err(refusal(io::Error::from_raw_os_error(nix::libc::EPERM)));
    }
    Ok(())
}

/// What the kernel's refusal comes from.
pub(super) fn refusal(source: io::Error) -> RootlessError {
    let cause = remedies::no_user_namespaces(&host_facts(), source.raw_os_error(), false);
    RootlessError::Forbidden { cause, source }
}
