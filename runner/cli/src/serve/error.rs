//! Why nothing is served.

use std::io;
use std::path::{Path, PathBuf};

use toolcell_cell::ProbeError;
use toolcell_policy::{InvalidPolicy, PolicyFault};
use toolcell_types::ControlId;

use super::contained::ContainedError;
use super::rootless::RootlessError;
use crate::missing::GROUPS;

/// Why `serve` ends before it serves. Nothing is left behind by then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// Without root it is not possible here.
    #[error(transparent)]
    Rootless {
        /// Why.
        source: RootlessError,
    },
    /// Root, as in a container, has not what it takes.
    #[error(transparent)]
    Contained {
        /// Why.
        source: ContainedError,
    },
    /// Something that every cell needs is refused here.
    #[error("cells cannot be had here")]
    Cells {
        /// What.
        source: toolcell_cell::ProbeError,
    },
    /// Somebody who means an ordinary instance must not meet one whose controls may be off.
    #[error("an instance in ablation mode has neither the default socket nor the default state")]
    AblationPlaces,
    /// The syscall filters know one architecture.
    #[error("this version runs on x86_64 only, this machine is {machine}")]
    Machine {
        /// What it is.
        machine: &'static str,
    },
    /// No cgroup version has the controllers for cells; no group can be had; or what an earlier start left in one cannot
    /// be removed.
    #[error("{what}")]
    Cgroups {
        /// What follows from it.
        what: &'static str,
        /// Why.
        source: toolcell_cell::CgroupError,
    },
    /// The policy has mistakes.
    #[error("the policy is not valid:\n{}", in_folder(folder, faults))]
    Policy {
        /// Its folder.
        folder: PathBuf,
        /// Every mistake.
        faults: InvalidPolicy,
    },
    /// The settings file.
    #[error("{}: {source}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Line, column, and what was expected.
        source: toml::de::Error,
    },
    /// A file or folder could not be had.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file or folder that somebody else could have prepared for us.
    #[error("{} {why}", path.display())]
    Unsafe {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Another instance has it.
    #[error("{} is in use by {holder}", path.display())]
    InUse {
        /// The state folder or the socket.
        path: PathBuf,
        /// Who has it.
        holder: String,
        /// How to end that one.
        remedy: String,
    },
    /// No ids left.
    #[error("no free range of 65536 user ids from {from} on lies within this machine's id map")]
    NoIds {
        /// Where the search began.
        from: u32,
        /// Whether that was named, and the map holds no such range at all; else all are taken.
        is_outside: bool,
    },
    /// A part ended, or took too long, before the daemon was ready.
    #[error("the {part} {why} before anything was served")]
    NotReady {
        /// Which part.
        part: &'static str,
        /// What it did.
        why: &'static str,
    },
    /// A signal asked for the end before anything was served. No failure.
    #[error("asked to end")]
    Asked,
    /// A system call that does not fail on a sound machine.
    #[error("{call} failed")]
    Call {
        /// Which.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl ServeError {
    /// What to do next, one sentence.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Rootless { source } => source.remedy(),
            Self::Contained { source } => source.remedy(),
            Self::Cells { source } => source.remedy(),
            Self::AblationPlaces => "name others with --socket and --state".to_owned(),
            Self::Machine { .. } => "use an x86_64 machine".to_owned(),
            Self::Settings { .. } => {
                "correct or remove that line; `toolcell serve --help` names every setting".to_owned()
            }
            Self::File { doing: "listen at", .. } => "name a socket in a folder in which this user can make one, with --socket".to_owned(),
            Self::File { path, source, .. } => of_file(path, source),
            Self::Unsafe { remedy, .. } => (*remedy).to_owned(),
            Self::InUse { remedy, .. } => remedy.clone(),
            Self::Policy { .. } => "correct the policy; no daemon was started or ended for it".to_owned(),
            Self::NoIds { is_outside: true, .. } => {
                "leave --uid-base out, or name one from which 65536 ids lie in /proc/self/uid_map and /proc/self/gid_map".to_owned()
            }
            Self::NoIds { .. } => "end another instance, or name another range with --uid-base".to_owned(),
            Self::Cgroups { source, .. } => source.remedy().to_owned(),
            Self::Call { .. } => {
                "look at the limits of this machine: processes, memory, seccomp of a container".to_owned()
            }
            Self::Asked => "start it again".to_owned(),
            Self::NotReady { .. } => "look at what it said above".to_owned(),
        }
    }
}

impl ServeError {
    /// Controls that cannot be had by it alone, for who asks what can be had here.
    pub(crate) fn controls(&self) -> Vec<ControlId> {
        match self {
            Self::Rootless { source: RootlessError::Forbidden { .. } } | Self::Contained { .. } => {
                vec![ControlId::NamespaceUser]
            }
            Self::Cells { source } => match source {
                ProbeError::Namespaces { .. } => vec![ControlId::NamespaceUser],
                ProbeError::Mounts { .. } => vec![ControlId::NamespaceMount],
                ProbeError::Proc { .. } => vec![ControlId::ProcMasked],
                ProbeError::Landlock => vec![ControlId::LandlockFs, ControlId::LandlockNet, ControlId::LandlockScope],
                ProbeError::Child { .. } => Vec::new(),
            },
            Self::Cgroups { .. } => GROUPS.to_vec(),
            Self::Rootless { .. }
            | Self::AblationPlaces
            | Self::Machine { .. }
            | Self::Policy { .. }
            | Self::Settings { .. }
            | Self::File { .. }
            | Self::Unsafe { .. }
            | Self::InUse { .. }
            | Self::NoIds { .. }
            | Self::NotReady { .. }
            | Self::Asked
            | Self::Call { .. } => Vec::new(),
        }
    }
}

/// What to do about a file or folder that cannot be had.
fn of_file(path: &Path, why: &io::Error) -> String {
    use nix::libc;
    let path = path.display();
    match why.raw_os_error() {
        Some(libc::ENOENT) => format!("make {path}, or name another path with the option or the setting that names it"),
        Some(libc::EACCES | libc::EPERM) => format!(
            "let the user who starts the daemon have {path} (`namei -l {path}` shows who may), or name another path with the \
             option or the setting that names it"
        ),
        Some(libc::EROFS) => format!(
            "name paths on a file system that can be written, with --state and --socket; {path} is on none (in a container: {})",
            toolcell_cell::container::STATE
        ),
        Some(libc::ENOTDIR | libc::EEXIST) => {
            format!("a file is where a folder is to be: name another path than {path}, or one above it")
        }
        Some(libc::ENOSPC | libc::EDQUOT) => format!("make room on the file system of {path}"),
        _ => format!("name another path than {path}, or see what of its file system forbids that"),
    }
}

/// Every mistake with the full path of its file, and what to do about it.
fn in_folder(folder: &Path, policy: &InvalidPolicy) -> String {
    let line = |fault: &PolicyFault| format!("{}/{fault}\n  hint: {}", folder.display(), fault.remedy());
    policy.faults().iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Turns an I/O result into one that names the path.
pub(crate) fn file<T, E: Into<io::Error>>(
    doing: &'static str,
    path: impl Into<PathBuf>,
    result: Result<T, E>,
) -> Result<T, ServeError> {
    result.map_err(|source| ServeError::File { doing, path: path.into(), source: source.into() })
}

/// Turns the result of a system call into one that names it.
pub(crate) fn call<T, E: Into<io::Error>>(name: &'static str, result: Result<T, E>) -> Result<T, ServeError> {
    result.map_err(|source| ServeError::Call { call: name, source: source.into() })
}

#[cfg(test)]
mod tests {
    use toolcell_cell::ProbeError;

    use super::*;

    #[test]
    fn every_error_says_what_to_do() {
        let path = || PathBuf::from("/p");
        let io = || io::Error::from_raw_os_error(nix::libc::ENOENT);
        let errors = [
            ServeError::Rootless { source: RootlessError::NoRuntime { has_login: false } },
            ServeError::Rootless { source: RootlessError::NoHome },
            ServeError::Rootless { source: RootlessError::SocketMode { mode: 0o666 } },
            ServeError::Rootless { source: RootlessError::UidBase { base: 70_000 } },
            ServeError::Rootless { source: RootlessError::Helper { source: io() } },
            ServeError::Rootless {
                source: RootlessError::Map { file: "/proc/self/uid_map", wanted: "1 1 1".into(), got: String::new() },
            },
            ServeError::Contained { source: ContainedError::Namespace { source: io::Error::from_raw_os_error(1) } },
            ServeError::Contained { source: ContainedError::Map { file: "uid_map", source: io() } },
            ServeError::Contained { source: ContainedError::Mounts { source: io() } },
            ServeError::Cells { source: ProbeError::Namespaces { source: io::Error::from_raw_os_error(28) } },
            ServeError::Cells { source: ProbeError::Mounts { source: io() } },
            ServeError::Cells { source: ProbeError::Proc { source: io() } },
            ServeError::Cells { source: ProbeError::Landlock },
            ServeError::Machine { machine: "aarch64" },
            ServeError::Cgroups {
                what: "cells cannot be limited here",
                source: toolcell_cell::CgroupError::NoControllers { v1_lacks: vec!["pids"], v2_lacks: None },
            },
            ServeError::Settings { path: path(), source: toml::from_str::<toml::Table>("x").unwrap_err() },
            ServeError::File { doing: "open", path: path(), source: io() },
            ServeError::File { doing: "open", path: path(), source: io::Error::from_raw_os_error(13) },
            ServeError::File { doing: "make", path: path(), source: io::Error::from_raw_os_error(30) },
            ServeError::File { doing: "make", path: path(), source: io::Error::from_raw_os_error(20) },
            ServeError::File { doing: "listen at", path: path(), source: io() },
            ServeError::Unsafe { path: path(), why: "is a link", remedy: "remove it" },
            ServeError::InUse { path: path(), holder: "another".to_owned(), remedy: "end it".to_owned() },
            ServeError::Policy {
                folder: path(),
                faults: toolcell_policy::Policy::parse(&[("tools.toml".to_owned(), b"x".to_vec())]).unwrap_err(),
            },
            ServeError::NoIds { from: 7, is_outside: false },
            ServeError::NoIds { from: 7, is_outside: true },
            ServeError::Cgroups {
                what: "the cgroups of this instance cannot be set up",
                source: toolcell_cell::CgroupError::Access { action: "make", path: path(), source: io() },
            },
            ServeError::NotReady { part: "daemon", why: "ended" },
            ServeError::Asked,
            ServeError::Call { call: "socketpair", source: io() },
        ];
        let lines: Vec<String> = errors.iter().map(|error| format!("{error}\n  {}", error.remedy())).collect();
        // What is missing in a container depends on the machine.
        let text = lines.join("\n").replace(&toolcell_cell::container::all(), "[all flags]");
        insta::assert_snapshot!(text);
    }
}
