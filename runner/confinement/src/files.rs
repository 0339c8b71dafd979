//! Landlock for a process with one folder: nothing else can be opened or changed, no TCP, and no signal and no abstract
//! socket that leads out.
//!
//! Of Landlock no file in /proc tells, so all of it is tried, before and after.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Pid;

use crate::tries::Tries;
use crate::{Act, ConfinementError};

/// The levels that were vetted, best first.
const VETTED: [ABI; 6] = [ABI::V6, ABI::V5, ABI::V4, ABI::V3, ABI::V2, ABI::V1];

/// The level that is in force: the best that was vetted and that this kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(ABI);

impl Level {
    /// Whether TCP is restricted (ABI 4, Linux 6.7).
    #[must_use]
    pub fn has_tcp(self) -> bool {
        self.0 >= ABI::V4
    }

    /// Whether signals and abstract sockets are (ABI 6, Linux 6.12).
    #[must_use]
    pub fn has_scopes(self) -> bool {
        self.0 >= ABI::V6
    }

    fn ruleset(self) -> Result<Ruleset, landlock::RulesetError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(self.0))?;
        if self.has_tcp() {
            rules = rules.handle_access(AccessNet::from_all(self.0))?;
        }
        if self.has_scopes() {
            rules = rules.scope(Scope::from_all(self.0))?;
        }
        Ok(rules)
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rest = match (self.has_tcp(), self.has_scopes()) {
            (true, true) => "files, TCP, signals and abstract sockets",
            (true, false) => "files and TCP; signals and abstract sockets from Linux 6.12 on",
            _ => "files; TCP from Linux 6.7 on, signals and abstract sockets from 6.12 on",
        };
        f.write_str(rest)
    }
}

/// Restricts the calling thread for good to `rights` below `folder`, and tries what must not work any more.
///
/// # Errors
/// [`ConfinementError`]: no Landlock here, or it did not hold.
pub fn restrict(folder: &str, rights: BitFlags<AccessFs>) -> Result<Level, ConfinementError> {
    let broken = |source| ConfinementError::Landlock { source };
    let level = VETTED.into_iter().map(Level).find(|level| level.ruleset().and_then(Ruleset::create).is_ok());
    let level = level.ok_or(ConfinementError::Weak { found: "not there" })?;
    let instruments = Instruments::prepare(level)?;
    instruments.try_all().all_work()?;
    let parent = PathFd::new(folder).map_err(|source| ConfinementError::Rule { path: folder.to_owned(), source })?;
    let known = rights & AccessFs::from_all(level.0);
    let created = level.ruleset().and_then(Ruleset::create).map_err(broken)?;
    let created = created.add_rule(PathBeneath::new(parent, known)).map_err(broken)?;
    let status = created.restrict_self().map_err(broken)?;
    if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
        return Err(ConfinementError::Weak { found: "only partly in force" });
    }
    instruments.try_all().all_refused(|act| match act {
        Act::ReadRoot | Act::Tcp | Act::Socket => Errno::ACCESS.raw_os_error(),
        Act::AbstractSocket | Act::Signal => Errno::PERM.raw_os_error(),
    })?;
    Ok(level)
}

/// What the acts are tried on.
struct Instruments {
    level: Level,
    /// An abstract listener that belongs to no domain, and its name.
    listener: OwnedFd,
    parent: Option<Pid>,
}

impl Instruments {
    fn prepare(level: Level) -> Result<Self, ConfinementError> {
        let listen = || -> rustix::io::Result<OwnedFd> {
            let listener = stream(AddressFamily::UNIX)?;
            // Without a name of ours the kernel finds one that is free (unix(7), "Autobind feature").
            rustix::net::bind(&listener, &SocketAddrUnix::new_unnamed())?;
            rustix::net::listen(&listener, 4)?;
            Ok(listener)
        };
        let listener = listen()
            .map_err(|errno| ConfinementError::Instrument { act: Act::AbstractSocket, source: errno.into() })?;
        Ok(Self { level, listener, parent: rustix::process::getppid() })
    }

    fn try_all(&self) -> Tries {
        let mut acts = vec![(Act::ReadRoot, read_root())];
        if self.level.has_tcp() {
            acts.push((Act::Tcp, bind_tcp()));
        }
        if self.level.has_scopes() {
            acts.push((Act::AbstractSocket, self.connect()));
            let signalled = self.parent.ok_or(Errno::SRCH).and_then(rustix::process::test_kill_process);
            acts.push((Act::Signal, signalled));
        }
        Tries::of(acts)
    }

    fn connect(&self) -> rustix::io::Result<()> {
        let address = rustix::net::getsockname(&self.listener)?;
        rustix::net::connect(stream(AddressFamily::UNIX)?, &address)
    }
}

fn read_root() -> rustix::io::Result<()> {
    rustix::fs::open("/", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map(drop)
}

fn bind_tcp() -> rustix::io::Result<()> {
    rustix::net::bind(stream(AddressFamily::INET)?, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
}

fn stream(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}
