//! What must not work any more, tried from inside before the tool is executed.
//!
//! Each act is harmless if it does work: the file goes at once, nothing is sent, the root stays the root, a limit is one
//! more. And none is tried where its control is switched off, or where without another one it would reach the machine.

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit};
use toolcell_types::{ControlId, ControlSet};

use crate::record::{NOT_TRIED, Probes};

/// With all capabilities, under the init's ids, whom the root belongs to, and before Landlock: only what mounts are like
/// can refuse the first two.
pub(super) fn before_landlock(probes: &mut Probes, off: ControlSet) {
    let is_own_tree = !off.has(ControlId::NamespaceMount);
    probes.root_errno = tried(is_own_tree && !off.has(ControlId::RootReadonly), make_file_in_root);
    let is_own_limit = is_own_tree && !off.has(ControlId::NamespaceUser);
    probes.proc_errno = tried(is_own_limit && !off.has(ControlId::ProcMasked), open_sysctl);
    probes.route_errno = tried(!off.has(ControlId::NamespaceNet), find_route);
}

/// Once the capabilities are gone and limits are set, before the filter.
pub(super) fn without_capabilities(probes: &mut Probes, off: ControlSet) {
    let has_none = !off.has(ControlId::Capabilities);
    probes.capability_errno = tried(has_none, || rustix::process::chroot("/"));
    probes.rlimit_errno = tried(has_none && !off.has(ControlId::Rlimits), raise_hard_limit);
}

/// Once the filter is in force.
pub(super) fn under_filter(probes: &mut Probes, off: ControlSet) {
    let unshare = || nix::sched::unshare(nix::sched::CloneFlags::empty());
    probes.filter_errno = match off.has(ControlId::Seccomp) {
        true => NOT_TRIED,
        false => unshare().err().map_or(0, |errno| errno as i32),
    };
}

fn tried(is_safe: bool, act: impl FnOnce() -> Result<(), Errno>) -> i32 {
    if is_safe { act().err().map_or(0, Errno::raw_os_error) } else { NOT_TRIED }
}

fn make_file_in_root() -> Result<(), Errno> {
    const NAME: &str = "/toolcell-probe";
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    drop(rustix::fs::openat(CWD, NAME, flags, Mode::from_raw_mode(0o600))?);
    rustix::fs::unlink(NAME)
}

/// The one that was written to before /proc became read-only.
fn open_sysctl() -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, "/proc/sys/user/max_user_namespaces", flags, Mode::empty()).map(drop)
}

/// Connecting a datagram socket sends nothing (udp(7)); the address is one for documentation (RFC 5737).
fn find_route() -> Result<(), Errno> {
    let elsewhere = std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(192, 0, 2, 1), 9);
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&socket, &elsewhere)
}

fn raise_hard_limit() -> Result<(), Errno> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let Some(most) = limit.maximum else { return Ok(()) };
    rustix::process::setrlimit(Resource::Nofile, Rlimit { maximum: most.checked_add(1), ..limit })
}
