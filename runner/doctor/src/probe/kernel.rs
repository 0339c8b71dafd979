//! Privilege and system calls: what every program needs works, what would give more does not.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use nix::libc;
use nix::sched::CloneFlags;
use nix::unistd::{Gid, Uid};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use toolcell_types::ControlId;
use toolcell_types::doctor::{Side, Trial};

use super::{COMMAND, fails, works};

/// A file to be closed to oneself; in the scratch.
const FILE: &str = "/tmp/.survey-closed";

/// This program in a process of its own, inside.
pub(super) fn own_child(words: &[&str]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "runs inside of a cell, where nothing but itself is started")]
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND).args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A file of one's own that its mode closes: only CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH opens it
/// (capabilities(7)), which in a user namespace of one's own whoever has them has over it.
pub(super) fn capabilities() -> Trial {
    let made = File::create(FILE).and_then(|_file| File::open(FILE));
    let closed = std::fs::set_permissions(FILE, Permissions::from_mode(0o000));
    let opened = closed.and_then(|()| File::open(FILE));
    let removed = std::fs::remove_file(FILE);
    Trial {
        id: ControlId::Capabilities,
        allowed: works("open a file of its own", &made.and(removed)),
        forbidden: fails("open a file of its own with mode 0", &opened, &[libc::EACCES]),
    }
}

/// Nothing can be tried: what set-id bits would give is stopped by two other controls before.
pub(super) fn no_new_privileges() -> Trial {
    let executed = own_child(&["nothing"]).status();
    let executed = executed.and_then(|status| status.success().then_some(()).ok_or(io::ErrorKind::Other.into()));
    Trial {
        id: ControlId::NoNewPrivs,
        allowed: works("execute a program", &executed),
        forbidden: Side::not_tried(
            "gain an id by a set-id program",
            "mounts.nosuid-nodev and the id map stop it before; the bit was read back",
        ),
    }
}

/// Calls that anybody may make outside of a cell: unshare(2) of nothing, and a socket to ask the kernel for routes; and one
/// that a filter that lists what it knows does not know.
pub(super) fn filter() -> Trial {
    let nothing = nix::sched::unshare(CloneFlags::empty()).map_err(io::Error::from);
    let netlink = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None);
    let netlink = netlink.map_err(io::Error::from).map(drop);
    let ring = toolcell_sys::ask_for_io_uring();
    let is = |result: &io::Result<()>, errno| result.as_ref().err().and_then(io::Error::raw_os_error) == Some(errno);
    let holds = is(&nothing, libc::EPERM) && is(&netlink, libc::EPERM) && is(&ring, libc::ENOSYS);
    let got = [&nothing, &netlink, &ring].map(super::word).join(", ");
    let own = rustix::process::getpid().as_raw_nonzero().get();
    Trial {
        id: ControlId::Seccomp,
        allowed: Side::tried("getpid", own.to_string(), own > 0),
        forbidden: Side::tried("unshare(0), a netlink socket, io_uring_setup", got, holds),
    }
}

/// Ids as the init has them; another user's cannot be taken.
pub(super) fn identity() -> Trial {
    const INIT: u32 = 65_533;
    const TOOL: u32 = 65_534;
    let ids = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let groups = nix::unistd::getgroups().map_err(io::Error::from);
    let taken = nix::unistd::setuid(Uid::from_raw(INIT)).map_err(io::Error::from);
    let joined = nix::unistd::setgroups(&[Gid::from_raw(INIT)]).map_err(io::Error::from);
    let refused = |result: &io::Result<()>| {
        matches!(result.as_ref().err().and_then(io::Error::raw_os_error), Some(libc::EPERM | libc::EINVAL))
    };
    let has_groups = groups.as_ref().map_or(true, |groups| !groups.is_empty());
    let got = if has_groups {
        "it has supplementary groups".to_owned()
    } else {
        [&taken, &joined].map(super::word).join(", ")
    };
    Trial {
        id: ControlId::IdentityUnprivileged,
        allowed: Side::tried("be user and group 65534", format!("{}, {}", ids.0, ids.1), ids == (TOOL, TOOL)),
        forbidden: Side::tried(
            "become the init's user, join its group",
            got,
            !has_groups && refused(&taken) && refused(&joined),
        ),
    }
}

/// The variables that the launcher gives a survey, and nothing of its own or the daemon's.
pub(super) fn environment() -> Trial {
    const GIVEN: [&str; 3] = ["PATH", "HOME", "LANG"];
    let names: Vec<String> = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    let more: Vec<&str> = names.iter().map(String::as_str).filter(|name| !GIVEN.contains(name)).take(8).collect();
    let all = GIVEN.iter().all(|name| names.iter().any(|known| known == name));
    let got = if more.is_empty() { "there is none".to_owned() } else { more.join(", ") };
    Trial {
        id: ControlId::EnvironmentAllowlist,
        allowed: Side::tried("have PATH, HOME and LANG", if all { "set" } else { "not all are set" }, all),
        forbidden: Side::tried("find another variable", got, more.is_empty()),
    }
}
