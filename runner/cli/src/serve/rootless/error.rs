//! Why a start without root is not possible, and which setting of the machine forbids it.

use std::io;
use std::path::Path;

/// Why nothing can be served without root here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RootlessError {
    /// No place for the socket.
    #[error("XDG_RUNTIME_DIR is not set to a folder: there is no place for a socket of your own")]
    NoRuntime,
    /// No place for the state.
    #[error("neither XDG_STATE_HOME nor HOME is set to a folder: there is no place for your key and ledger")]
    NoHome,
    /// The socket would be open to others.
    #[error("--socket-mode {mode:04o} lets others connect, and without root an instance serves its own user alone")]
    SocketMode {
        /// The mode that was asked for.
        mode: u32,
    },
    /// The kernel refuses user namespaces, or everything in them.
    #[error("this machine does not let an ordinary user have a user namespace: {why}")]
    Forbidden {
        /// Which setting forbids it.
        why: &'static str,
        /// What to do about it.
        remedy: &'static str,
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
            Self::NoRuntime => {
                "export XDG_RUNTIME_DIR=/run/user/$(id -u), or another folder of your own that nobody else \
                                can change (a login through systemd sets it); or start it as root"
                    .to_owned()
            }
            Self::NoHome => "export HOME, or XDG_STATE_HOME, or name a folder with --state".to_owned(),
            Self::SocketMode { .. } => "leave it out, or serve others from an instance that root starts".to_owned(),
            Self::Forbidden { remedy, .. } => (*remedy).to_owned(),
            Self::Helper { .. } => "look at the limits of this user: processes, memory".to_owned(),
            Self::Map { .. } => "look at the user's lines in /etc/subuid and /etc/subgid".to_owned(),
        }
    }
}

/// Refuses where a setting alone tells that nothing will come of it, before anything is made.
pub(in crate::serve) fn check_settings() -> Result<(), RootlessError> {
    let knobs = Knobs::read(Path::new("/proc/sys"));
    if knobs.most == Some(0) || knobs.clone == Some(0) {
        return Err(refusal(io::Error::from_raw_os_error(nix::libc::EPERM)));
    }
    Ok(())
}

/// What the kernel's refusal comes from.
pub(super) fn refusal(source: io::Error) -> RootlessError {
    let knobs = Knobs::read(Path::new("/proc/sys"));
    let (why, remedy) = knobs.blame(source.raw_os_error());
    RootlessError::Forbidden { why, remedy, source }
}

/// Settings that forbid user namespaces to ordinary users. Absent where the kernel has no such setting.
#[derive(Debug, Default)]
struct Knobs {
    /// user.max_user_namespaces (user_namespaces(7)).
    most: Option<u64>,
    /// kernel.unprivileged_userns_clone, of Debian's and Arch's older kernels.
    clone: Option<u64>,
    /// kernel.apparmor_restrict_unprivileged_userns, of Ubuntu from 23.10 on.
    apparmor: Option<u64>,
}

impl Knobs {
    fn read(sysctl: &Path) -> Self {
        let number = |name: &str| std::fs::read_to_string(sysctl.join(name)).ok()?.trim().parse().ok();
        Self {
            most: number("user/max_user_namespaces"),
            clone: number("kernel/unprivileged_userns_clone"),
            apparmor: number("kernel/apparmor_restrict_unprivileged_userns"),
        }
    }

    fn blame(&self, errno: Option<i32>) -> (&'static str, &'static str) {
        if self.most == Some(0) {
            return (
                "user.max_user_namespaces is 0",
                "allow some, as root: sysctl -w user.max_user_namespaces=15000; or start toolcell as root",
            );
        }
        if self.clone == Some(0) {
            return (
                "kernel.unprivileged_userns_clone is 0",
                "allow them, as root: sysctl -w kernel.unprivileged_userns_clone=1; or start toolcell as root",
            );
        }
        if self.apparmor.is_some_and(|value| value != 0) {
            return (
                "AppArmor restricts them (kernel.apparmor_restrict_unprivileged_userns is 1)",
                "lift it, as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; or give this program an \
                 AppArmor profile with the rule `userns,`; or start toolcell as root",
            );
        }
        if errno == Some(nix::libc::ENOSPC) {
            return (
                "as many as user.max_user_namespaces allows are in use, or they are nested too deep",
                "raise it, as root: sysctl -w user.max_user_namespaces=15000; or start toolcell as root",
            );
        }
        (
            "a filter or a security module refuses them, as containers have it by default",
            "start a container with --security-opt seccomp=toolcell-seccomp.json --security-opt systempaths=unconfined, where \
             the host has AppArmor also with --security-opt apparmor=unconfined; elsewhere ask who administers the machine",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_forbids_user_namespaces_is_named_with_its_sysctl() {
        let folder = tempfile::tempdir().unwrap();
        let blamed = |files: &[(&str, &str)], errno: i32| {
            let root = folder.path().join(format!("{errno}{}", files.len()));
            for (name, text) in files {
                let path = root.join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            let (why, remedy) = Knobs::read(&root).blame(Some(errno));
            format!("{why}\n  {remedy}")
        };
        let (eperm, enospc, eacces) = (nix::libc::EPERM, nix::libc::ENOSPC, nix::libc::EACCES);
        let fine = ("user/max_user_namespaces", "96365\n");
        let all = [
            blamed(&[("user/max_user_namespaces", "0\n")], enospc),
            blamed(&[fine, ("kernel/unprivileged_userns_clone", "0\n")], eperm),
            blamed(
                &[
                    fine,
                    ("kernel/unprivileged_userns_clone", "1\n"),
                    ("kernel/apparmor_restrict_unprivileged_userns", "1\n"),
                ],
                eacces,
            ),
            blamed(&[fine, ("kernel/apparmor_restrict_unprivileged_userns", "0\n")], enospc),
            blamed(&[], eperm),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }
}
