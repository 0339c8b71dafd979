//! Root in a container: root's user id and files, but not CAP_SYS_ADMIN, and with it no mounts and no namespaces.
//!
//! A user namespace gives that back for what is in it, as it does to any user. Here every id keeps its number in it, so
//! that from there on all is as with root of the machine: ids of their own for parts and cells, control groups, files. It
//! adds nothing to what the container may do to anything outside of the namespace.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};

use nix::sched::CloneFlags;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use rustix::thread::CapabilitySet;
use toolcell_cell::container;

/// Why root cannot serve here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContainedError {
    /// No user namespace.
    #[error("root has no CAP_SYS_ADMIN here, and may not make a user namespace instead")]
    Namespace {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// No map.
    #[error("root has no CAP_SYS_ADMIN here, and may not write the {file} of a user namespace instead")]
    Map {
        /// `uid_map` or `gid_map`.
        file: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A map that is not what was written.
    #[error("{file} reads back as {got:?}, expected {wanted:?}")]
    MapDiffers {
        /// Which.
        file: &'static str,
        /// What was written.
        wanted: String,
        /// What is there.
        got: String,
    },
    /// The namespace is there, and everything in it is refused.
    #[error("mounts are refused in the user namespace that root without CAP_SYS_ADMIN has made")]
    Mounts {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Something that does not fail on a sound machine.
    #[error("{what} failed")]
    Call {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl ContainedError {
    /// What to do next, one sentence.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Namespace { source } if source.raw_os_error() == Some(nix::libc::ENOSPC) => {
                "allow more, as root of the machine: sysctl -w user.max_user_namespaces=15000".to_owned()
            }
            Self::Namespace { .. } => format!("start the container with {}", container::all()),
            Self::Map { .. } => "leave the container the capabilities SETUID, SETGID and SETFCAP: --cap-add SETUID \
                                 --cap-add SETGID --cap-add SETFCAP"
                .to_owned(),
            Self::Mounts { .. } => {
                format!("where the host has AppArmor start the container with {}", container::APPARMOR)
            }
            Self::MapDiffers { .. } | Self::Call { .. } => {
                "look at the limits of this machine: processes, memory, seccomp of a container".to_owned()
            }
        }
    }
}

type Result<T> = std::result::Result<T, ContainedError>;

fn call<T, E: Into<io::Error>>(what: &'static str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|source| ContainedError::Call { what, source: source.into() })
}

/// Does something as this process, and if that is refused to root, once more [`within`] the namespaces, as serve itself would.
pub(super) fn with_root_s_privilege(act: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match act() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && rustix::process::geteuid().is_root() => {
            // What the namespaces are refused for is told elsewhere.
            within(act).map_err(|_again| error)
        }
        other => other,
    }
}

/// Does something in a process of its own that has entered the namespaces, in which root has root's privilege over the files
/// of every id that there is. The process goes with the act, and with its parent. Needs a single thread.
///
/// # Errors
/// That of the act, or that there are no namespaces.
pub(super) fn within(act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let child = toolcell_sys::clone_process(0, None, || {
        let entered = toolcell_sys::parent_death_signal().map_err(io::Error::other);
        let done = entered.and_then(|()| enter().map_err(io::Error::other)).and_then(|()| act());
        done.map_or_else(|error| error.raw_os_error().unwrap_or(nix::libc::EPERM), |()| 0)
    });
    let child = child.map_err(|error| io::Error::from_raw_os_error(error.errno()))?;
    let reap = || waitid(WaitId::PidFd(child.pidfd.as_fd()), WaitIdOptions::EXITED);
    match rustix::io::retry_on_intr(reap)?.and_then(|status| status.exit_status()) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::Error::other("the process for it was ended")),
    }
}

const MAPS: [&str; 2] = ["uid_map", "gid_map"];

/// Enters the namespaces if this process lacks the privilege that root of a machine has. Needs a single thread.
///
/// # Errors
/// [`ContainedError`] where that is refused.
pub(super) fn enter_if_needed() -> Result<()> {
    let has = call("capget", rustix::thread::capabilities(None))?.effective;
    if has.contains(CapabilitySet::SYS_ADMIN) { Ok(()) } else { enter() }
}

fn enter() -> Result<()> {
    let mut maps = [String::new(), String::new()];
    for (map, name) in maps.iter_mut().zip(MAPS) {
        *map = same_numbers(&call("reading a map", std::fs::read_to_string(format!("/proc/self/{name}")))?);
    }
    let (wait, word) = call("pipe2", rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC))?;
    let us = rustix::process::getpid().as_raw_nonzero().to_string();
    // Maps of more than one's own id are written from outside of the namespace (user_namespaces(7)).
    let writer = toolcell_sys::clone_process(0, None, || {
        let mut byte = [0_u8; 1];
        let ready = toolcell_sys::close_except(&[wait.as_raw_fd()]).is_ok()
            && toolcell_sys::parent_death_signal().is_ok()
            && rustix::io::retry_on_intr(|| rustix::io::read(&wait, &mut byte)) == Ok(1);
        if ready { write_maps(&us, &maps) } else { NO_WORD }
    });
    let writer = call("clone", writer.map_err(|error| io::Error::from_raw_os_error(error.errno())))?;
    drop(wait);
    let entered = nix::sched::unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS);
    if entered.is_ok() {
        call("write", rustix::io::write(&word, b"x"))?;
    }
    // Its end tells a writer whose word did not come to end as well.
    drop(word);
    let reap = || waitid(WaitId::PidFd(writer.pidfd.as_fd()), WaitIdOptions::EXITED);
    let status = call("waitid", rustix::io::retry_on_intr(reap))?.and_then(|status| status.exit_status());
    entered.map_err(|errno| ContainedError::Namespace { source: errno.into() })?;
    written(status)?;
    for (wanted, file) in maps.into_iter().zip(MAPS) {
        let got = same_numbers(&call("reading a map", std::fs::read_to_string(format!("/proc/self/{file}")))?);
        if got != wanted {
            return Err(ContainedError::MapDiffers { file, wanted, got });
        }
    }
    // The first use of privilege: AppArmor lets the namespace be made and then refuses everything in it.
    let flags = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", flags).map_err(|errno| ContainedError::Mounts { source: errno.into() })
}

/// The map of this namespace (inside, outside, count) as one in which every id that there is keeps its number.
fn same_numbers(map: &str) -> String {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (inside, count) = (words.next()?, words.nth(1)?);
        Some(format!("{inside} {inside} {count}\n"))
    };
    map.lines().filter_map(line).collect()
}

/// Exit codes of the writer: 0, an errno of the first map, one of the second with this bit, or that no word came.
const OF_GROUPS: i32 = 0x80;
const NO_WORD: i32 = 0xff;

fn write_maps(process: &str, maps: &[String; 2]) -> i32 {
    for ((name, map), bit) in MAPS.into_iter().zip(maps).zip([0, OF_GROUPS]) {
        let file = OpenOptions::new().write(true).open(format!("/proc/{process}/{name}"));
        if let Err(error) = file.and_then(|mut file: File| file.write_all(map.as_bytes())) {
            return error.raw_os_error().unwrap_or(nix::libc::EIO) | bit;
        }
    }
    0
}

fn written(status: Option<i32>) -> Result<()> {
    let [users, groups] = MAPS;
    let refused = |file, errno| Err(ContainedError::Map { file, source: io::Error::from_raw_os_error(errno) });
    match status {
        Some(0) => Ok(()),
        Some(NO_WORD) | None => call("writing the maps", Err(io::Error::other("the process for it was ended"))),
        Some(code) if code & OF_GROUPS != 0 => refused(groups, code & !OF_GROUPS),
        Some(code) => refused(users, code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_that_there_is_keeps_its_number() {
        assert_eq!(same_numbers("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(same_numbers("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
    }

    #[test]
    fn what_the_writer_was_refused_is_told() {
        assert!(written(Some(0)).is_ok());
        let told = |code| written(Some(code)).unwrap_err();
        assert!(matches!(told(1), ContainedError::Map { file: "uid_map", source } if source.raw_os_error() == Some(1)));
        let groups = told(OF_GROUPS | 22);
        assert!(matches!(groups, ContainedError::Map { file: "gid_map", source } if source.raw_os_error() == Some(22)));
        assert!(matches!(told(NO_WORD), ContainedError::Call { .. }));
    }
}
