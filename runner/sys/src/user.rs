//! Giving up privilege for good, and dying with the parent.

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use rustix::thread::CapabilitySet;

/// Why privilege was not given up.
#[derive(Debug)]
pub enum BecomeError {
    /// A system call failed.
    Call {
        /// Which.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// All calls succeeded, but reading back shows something else.
    ReadBack {
        /// What is not as asked for.
        what: &'static str,
    },
}

impl std::fmt::Display for BecomeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Call { call, source } => write!(f, "{call} failed while giving up privilege: {source}"),
            Self::ReadBack { what } => write!(f, "privilege was given up, but {what} is not as asked for"),
        }
    }
}

impl std::error::Error for BecomeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Call { source, .. } => Some(source),
            Self::ReadBack { .. } => None,
        }
    }
}

fn call<T, E: Into<io::Error>>(name: &'static str, result: Result<T, E>) -> Result<T, BecomeError> {
    result.map_err(|source| BecomeError::Call { call: name, source: source.into() })
}

/// Becomes an ordinary user: no supplementary group, no capability in any set, none that execve(2) could give back,
/// no core dump, not dumpable, killed when the parent dies. Reads all of it back.
///
/// # Errors
/// [`BecomeError`]; the process must then end.
pub fn become_user(uid: u32, gid: u32) -> Result<(), BecomeError> {
    call("setgroups", nix::unistd::setgroups(&[]))?;
    empty_bounding_set()?;
    let (user, group) = (nix::unistd::Uid::from_raw(uid), nix::unistd::Gid::from_raw(gid));
    call("setresgid", nix::unistd::setresgid(group, group, group))?;
    call("setresuid", nix::unistd::setresuid(user, user, user))?;
    give_up()?;
    let groups = call("getgroups", nix::unistd::getgroups())?;
    if !groups.is_empty() {
        return Err(BecomeError::ReadBack { what: "the list of supplementary groups" });
    }
    read_back(uid, gid)
}

/// Stays the user that the process is, and gives up all that [`become_user`] does. Supplementary groups stay where the
/// user namespace does not let them be dropped (user_namespaces(7), "setgroups").
///
/// # Errors
/// [`BecomeError`]; the process must then end.
pub fn remain_user() -> Result<(), BecomeError> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    give_up()?;
    read_back(uid, gid)
}

/// What does not depend on who the process is. After a change of ids, which clears the parent-death signal (prctl(2)).
fn give_up() -> Result<(), BecomeError> {
    call(
        "setrlimit(RLIMIT_CORE)",
        rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }),
    )?;
    empty_capabilities()?;
    call("prctl(PR_SET_NO_NEW_PRIVS)", rustix::thread::set_no_new_privs(true))?;
    call("prctl(PR_SET_DUMPABLE)", rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable))?;
    parent_death_signal()
}

/// Has the kernel send SIGKILL to this process when its parent ends. Cleared by a change of user ids.
///
/// # Errors
/// [`BecomeError::Call`].
pub fn parent_death_signal() -> Result<(), BecomeError> {
    call("prctl(PR_SET_PDEATHSIG)", rustix::process::set_parent_process_death_signal(Some(Signal::KILL)))
}

fn empty_bounding_set() -> Result<(), BecomeError> {
    let capability = |bit: u32| CapabilitySet::from_bits_retain(1 << bit);
    for bit in 0..64 {
        match rustix::thread::remove_capability_from_bounding_set(capability(bit)) {
            Ok(()) => {}
            // The kernel knows no capability of this number, nor of a higher one.
            Err(rustix::io::Errno::INVAL) => break,
            // Without CAP_SETPCAP nothing can be dropped, and nothing has to be where nothing is left.
            Err(rustix::io::Errno::PERM) if is_bounding_set_empty(bit)? => break,
            Err(errno) => return Err(BecomeError::Call { call: "prctl(PR_CAPBSET_DROP)", source: errno.into() }),
        }
    }
    Ok(())
}

/// Whether no capability from this number on is in the bounding set.
fn is_bounding_set_empty(from: u32) -> Result<bool, BecomeError> {
    for bit in from..64 {
        match rustix::thread::capability_is_in_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(true) => return Ok(false),
            Ok(false) => {}
            Err(rustix::io::Errno::INVAL) => break,
            Err(errno) => return Err(BecomeError::Call { call: "prctl(PR_CAPBSET_READ)", source: errno.into() }),
        }
    }
    Ok(true)
}

/// Empties the ambient, bounding, effective, permitted and inheritable capability sets, in this order: the bounding
/// set needs CAP_SETPCAP. A bounding set that is empty already needs nothing.
///
/// # Errors
/// [`BecomeError::Call`].
pub fn empty_capabilities() -> Result<(), BecomeError> {
    call("prctl(PR_CAP_AMBIENT_CLEAR_ALL)", rustix::thread::clear_ambient_capability_set())?;
    empty_bounding_set()?;
    let none = rustix::thread::CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    call("capset", rustix::thread::set_capabilities(None, none))
}

/// Has every permitted capability survive execve(2) of a program without privileges of its own (ambient capabilities,
/// capabilities(7), Linux 4.3).
///
/// # Errors
/// [`BecomeError::Call`].
pub fn keep_capabilities_over_exec() -> Result<(), BecomeError> {
    let mut sets = call("capget", rustix::thread::capabilities(None))?;
    sets.inheritable = sets.permitted;
    call("capset", rustix::thread::set_capabilities(None, sets))?;
    for capability in sets.permitted.iter() {
        let raised = rustix::thread::configure_capability_in_ambient_set(capability, true);
        call("prctl(PR_CAP_AMBIENT_RAISE)", raised)?;
    }
    Ok(())
}

/// Takes back what [`keep_capabilities_over_exec`] set, for what this process starts from now on. Its own stay.
///
/// # Errors
/// [`BecomeError::Call`].
pub fn keep_nothing_over_exec() -> Result<(), BecomeError> {
    call("prctl(PR_CAP_AMBIENT_CLEAR_ALL)", rustix::thread::clear_ambient_capability_set())?;
    let mut sets = call("capget", rustix::thread::capabilities(None))?;
    sets.inheritable = CapabilitySet::empty();
    call("capset", rustix::thread::set_capabilities(None, sets))
}

/// Runs `work` without any effective capability, and has those of before again afterwards: it can do what the process's
/// user can.
///
/// # Errors
/// [`BecomeError::Call`]: the capabilities could not be put down or taken up again.
pub fn without_capabilities<T>(work: impl FnOnce() -> T) -> Result<T, BecomeError> {
    let before = call("capget", rustix::thread::capabilities(None))?;
    let none = rustix::thread::CapabilitySets { effective: CapabilitySet::empty(), ..before };
    call("capset", rustix::thread::set_capabilities(None, none))?;
    let done = work();
    call("capset", rustix::thread::set_capabilities(None, before))?;
    Ok(done)
}

fn read_back(uid: u32, gid: u32) -> Result<(), BecomeError> {
    let uids = call("getresuid", nix::unistd::getresuid())?;
    let gids = call("getresgid", nix::unistd::getresgid())?;
    let sets = call("capget", rustix::thread::capabilities(None))?;
    let none = CapabilitySet::empty();
    let bounded =
        call("prctl(PR_CAPBSET_READ)", rustix::thread::capability_is_in_bounding_set(CapabilitySet::SYS_ADMIN))?;
    let checks = [
        ("the user id", [uids.real, uids.effective, uids.saved].iter().all(|id| id.as_raw() == uid)),
        ("the group id", [gids.real, gids.effective, gids.saved].iter().all(|id| id.as_raw() == gid)),
        ("a capability set", sets.effective == none && sets.permitted == none && sets.inheritable == none),
        ("the bounding set", !bounded),
        ("no_new_privs", matches!(rustix::thread::no_new_privs(), Ok(true))),
        ("the dumpable flag", matches!(rustix::process::dumpable_behavior(), Ok(DumpableBehavior::NotDumpable))),
        ("the parent-death signal", matches!(rustix::process::parent_process_death_signal(), Ok(Some(Signal::KILL)))),
    ];
    match checks.into_iter().find(|(_, holds)| !holds) {
        Some((what, _)) => Err(BecomeError::ReadBack { what }),
        None => Ok(()),
    }
}
