//! Landlock: a second list of what may be opened, and the proof that it is in force.
//!
//! Of Landlock no file in /proc tells. So the same act is tried before and after: before it must succeed (else the
//! instrument is broken and the cell is refused), after it must fail with Landlock's own errno.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use landlock::{
    Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use toolcell_types::{ControlId, ControlSet};

use super::mounts::{DEV_NODES, SCRATCH_MOUNTS, tmpfs};
use crate::record::{At as _, Op, Probes, Stage, StageError};

/// The highest level that was vetted and that this kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abi(landlock::ABI);

impl Abi {
    /// Whether TCP can be restricted (ABI 4, Linux 6.7).
    pub(crate) fn has_net(self) -> bool {
        self.0 >= landlock::ABI::V4
    }

    /// Whether signals and abstract sockets can be (ABI 6, Linux 6.12).
    pub(crate) fn has_scope(self) -> bool {
        self.0 >= landlock::ABI::V6
    }

    fn ruleset(self, off: ControlSet) -> Result<Ruleset, landlock::RulesetError> {
        let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        if !off.has(ControlId::LandlockFs) {
            rules = rules.handle_access(AccessFs::from_all(self.0))?;
        }
        if self.has_net() && !off.has(ControlId::LandlockNet) {
            rules = rules.handle_access(AccessNet::from_all(self.0))?;
        }
        if self.has_scope() && !off.has(ControlId::LandlockScope) {
            rules = rules.scope(Scope::from_all(self.0))?;
        }
        Ok(rules)
    }

    /// Whether a ruleset without these would restrict nothing, which the kernel does not take.
    fn is_nothing_left(self, off: ControlSet) -> bool {
        let is_off = |there: bool, id| !there || off.has(id);
        off.has(ControlId::LandlockFs)
            && is_off(self.has_net(), ControlId::LandlockNet)
            && is_off(self.has_scope(), ControlId::LandlockScope)
    }
}

/// Finds the level by asking the kernel for each, highest first. `None`: no Landlock here.
pub(crate) fn best_abi() -> Option<Abi> {
    use landlock::ABI;
    [ABI::V6, ABI::V5, ABI::V4, ABI::V3, ABI::V2, ABI::V1]
        .into_iter()
        .map(Abi)
        .find(|abi| abi.ruleset(ControlSet::EMPTY).and_then(Ruleset::create).is_ok())
}

/// Restricts the calling thread for good and tries what must not work any more. What is switched off is tried as well.
/// The value is `probes` with what was found.
pub(super) fn restrict(
    probes: Probes,
    abi: Abi,
    off: ControlSet,
    trial_dir: Option<&OwnedFd>,
) -> Result<Probes, StageError> {
    let instruments = Instruments::prepare(abi, trial_dir)?;
    let before = instruments.try_all(c"before")?;
    if before != Tries::default() {
        // What fails without Landlock proves nothing when it fails with it.
        let errno =
            [before.fs, before.net, before.abstract_socket, before.signal].into_iter().find(|errno| *errno != 0);
        return Err(StageError::new(Stage::Landlock, Op::Probe, errno.unwrap_or(nix::libc::EPROTO)));
    }
    let landlock_abi = if abi.is_nothing_left(off) { 0 } else { enforce(abi, off)? };
    let after = instruments.try_all(c"after")?;
    Ok(Probes {
        landlock_abi,
        fs_errno: after.fs,
        net_errno: after.net,
        abstract_errno: after.abstract_socket,
        signal_errno: after.signal,
        ..probes
    })
}

fn enforce(abi: Abi, off: ControlSet) -> Result<u32, StageError> {
    let broken = |op| move |error: landlock::RulesetError| StageError::new(Stage::Landlock, op, errno_of(&error));
    let sets_no_new_privs = !off.has(ControlId::NoNewPrivs);
    let rules = abi.ruleset(off).map_err(broken(Op::Ruleset))?;
    let mut created = rules.create().map_err(broken(Op::Ruleset))?.no_new_privs(sets_no_new_privs);
    let paths = if off.has(ControlId::LandlockFs) { Vec::new() } else { allowed(abi.0) };
    for (index, (path, access)) in paths.into_iter().enumerate() {
        let parent = PathFd::new(path).map_err(|error| StageError {
            index: index_of(index),
            ..StageError::new(Stage::Landlock, Op::Rule, errno_of(&error))
        })?;
        created = created.add_rule(PathBeneath::new(parent, access)).map_err(broken(Op::Rule))?;
    }
    let status = created.restrict_self().map_err(broken(Op::Restrict))?;
    if status.ruleset != RulesetStatus::FullyEnforced || status.no_new_privs != sets_no_new_privs {
        return Err(StageError::new(Stage::Landlock, Op::Restrict, nix::libc::EOPNOTSUPP));
    }
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.and_then(|abi| u32::try_from(abi).ok()).unwrap_or(effective_abi as u32)
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    })
}

fn index_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Everything inside may be read and executed; only the scratch may be changed, without device nodes; the device
/// nodes may be written to.
fn allowed(abi: landlock::ABI) -> Vec<(&'static str, BitFlags<AccessFs>)> {
    let scratch = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let node = AccessFs::from_file(abi) & !BitFlags::from(AccessFs::Execute);
    let mut rules = vec![("/", AccessFs::from_read(abi))];
    rules.extend(SCRATCH_MOUNTS.map(|path| (path, scratch)));
    rules.extend(DEV_NODES.map(|node_of| (node_of.path, node)));
    rules
}

/// The errno at the bottom of a chain of causes.
fn errno_of(error: &(dyn std::error::Error + 'static)) -> i32 {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(errno) = current.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            return errno;
        }
        cause = current.source();
    }
    nix::libc::EINVAL
}

/// Errno per act, 0 where it worked.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tries {
    fs: i32,
    net: i32,
    abstract_socket: i32,
    signal: i32,
}

/// What the acts are tried on: made before the restriction, out of reach of any path.
struct Instruments {
    abi: Abi,
    /// A tmpfs that is attached nowhere, so that no rule covers it; gone with this descriptor.
    dir: OwnedFd,
    /// An abstract listener that belongs to no domain.
    _listener: OwnedFd,
    name: SocketAddrUnix,
}

impl Instruments {
    fn prepare(abi: Abi, trial_dir: Option<&OwnedFd>) -> Result<Self, StageError> {
        let dir = match trial_dir {
            Some(dir) => dir.try_clone().at(Stage::Landlock, Op::NewTmpfs)?,
            None => make_trial_dir().at(Stage::Landlock, Op::NewTmpfs)?,
        };
        let listener = unix_socket()?;
        // Without a network namespace of its own there are others with such a name.
        let mut random = [0_u8; 8];
        let _filled = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .at(Stage::Landlock, Op::Probe)?;
        let name = format!("toolcell-probe-{:016x}", u64::from_ne_bytes(random));
        let name = SocketAddrUnix::new_abstract_name(name.as_bytes()).at(Stage::Landlock, Op::Probe)?;
        rustix::net::bind(&listener, &name).at(Stage::Landlock, Op::Probe)?;
        rustix::net::listen(&listener, 4).at(Stage::Landlock, Op::Probe)?;
        Ok(Self { abi, dir, _listener: listener, name })
    }

    fn try_all(&self, file: &std::ffi::CStr) -> Result<Tries, StageError> {
        let mut tries = Tries { fs: errno(make_file(self.dir.as_fd(), file)), ..Tries::default() };
        if self.abi.has_net() {
            let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .at(Stage::Landlock, Op::Probe)?;
            tries.net = errno(rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)));
        }
        if self.abi.has_scope() {
            let socket = unix_socket()?;
            tries.abstract_socket = errno(rustix::net::connect(&socket, &self.name));
            // The init is outside of the domain; signal 0 asks for the right alone (kill(2)).
            let init = rustix::process::getppid().unwrap_or(rustix::process::Pid::INIT);
            tries.signal = errno(rustix::process::test_kill_process(init));
        }
        Ok(tries)
    }
}

/// A tmpfs that is attached nowhere, in which everybody may make files.
pub(crate) fn make_trial_dir() -> Result<OwnedFd, Errno> {
    tmpfs(&[("size", "4k"), ("nr_inodes", "8"), ("mode", "0777")])
}

fn unix_socket() -> Result<OwnedFd, StageError> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .at(Stage::Landlock, Op::Probe)
}

fn make_file(dir: BorrowedFd<'_>, name: &std::ffi::CStr) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600)).map(drop)
}

fn errno(result: Result<(), Errno>) -> i32 {
    result.err().map_or(0, Errno::raw_os_error)
}
