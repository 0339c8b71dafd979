//! Plans with mounts of the caller's: their paths are opened by a child first, and only then is the cell built.
//!
//! The plan waits in a memory file meanwhile, not in memory: a cell of somebody else that is cloned in between must not
//! find it.

use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use toolcell_sys::Child;
use toolcell_types::CellId;
use toolcell_types::plan::{KillReason, LaunchFault, PACKET_MAX_BYTES, Prepare, ToLauncher};

use super::source::{OPENING_PARTS, Part, Source};
use super::{Launcher, LauncherError, bad_plan};
use crate::clock::monotonic_us;
use crate::opener::{self, Opener};
use crate::wiped::Wiped;
use crate::workshop::{Begun, Passed};

/// Most children that could not be killed, of one user and of all: each holds a process; beyond that, mounts are refused.
const STUCK_OF_ONE_MAX: usize = 8;
const STUCK_MAX: usize = 256;

/// A plan whose mounts are being opened.
#[derive(Debug)]
pub(super) struct Opening {
    cell: CellId,
    plan: OwnedFd,
    passed: Passed,
    /// What of the cell is there already.
    begun: Begun,
    opener: Opener,
}

impl Opening {
    /// Who opens them.
    pub(super) fn into_opener(self) -> Opener {
        self.opener
    }
}

/// A child that opened mounts and is not reaped yet.
#[derive(Debug)]
pub(super) struct Stuck {
    child: Child,
    /// Whose mounts they were.
    uid: u32,
    since_us: u64,
}

/// How long a child may take to die before it counts as stuck, microseconds.
const DYING_US: u64 = 1_000_000;

impl Launcher {
    /// Starts opening; the cell is built when the answer is there.
    pub(super) fn open_first(
        &mut self,
        (cell, slot): (CellId, u32),
        prepare: &Prepare<'_>,
        passed: Passed,
        packet: &[u8],
    ) -> Result<(), LauncherError> {
        let now_us = monotonic_us();
        let stuck = |of: Option<u32>| {
            let those = self.stuck.iter().filter(|one| of.is_none_or(|uid| one.uid == uid));
            those.filter(|one| now_us.saturating_sub(one.since_us) > DYING_US).count()
        };
        if stuck(Some(prepare.caller.uid)) >= STUCK_OF_ONE_MAX || stuck(None) >= STUCK_MAX {
            let count = stuck(Some(prepare.caller.uid));
            return self.refuse(cell, opener::too_many(count));
        }
        let started = crate::workshop::validate(prepare).and_then(|()| {
            let plan = keep(packet).map_err(|error| LaunchFault::Stage {
                stage: "mounts".to_owned(),
                errno: error.raw_os_error().unwrap_or(nix::libc::EIO),
                detail: "keep the plan".to_owned(),
            })?;
            Ok((plan, self.ask_opener(slot, prepare)?))
        });
        let (plan, opener) = match started {
            Ok(started) => started,
            Err(fault) => return self.refuse(cell, fault),
        };
        // Meanwhile, what needs nothing of the caller's.
        let begun = match self.shop.begin(slot, prepare) {
            Ok(begun) => begun,
            Err(fault) => {
                self.bury(opener);
                return self.refuse(cell, fault);
            }
        };
        let turn = self.next_turn(slot);
        for (fd, part) in opener.sources().into_iter().zip(OPENING_PARTS) {
            self.watch(fd, Source::Cell { slot, turn, part })?;
        }
        let _was_free = self.free.remove(&slot);
        let _none = self.slots.insert(cell, slot);
        let _none = self.openings.insert(slot, Opening { cell, plan, passed, begun, opener });
        Ok(())
    }

    /// The child has answered, or will not.
    pub(super) fn on_opening(&mut self, slot: u32, part: Part) -> Result<(), LauncherError> {
        let Some(opening) = self.openings.remove(&slot) else { return Ok(()) };
        let Opening { cell, plan, passed, begun, mut opener } = opening;
        let trees = match opener.take() {
            Some(answer) => answer,
            None if part == Part::Opened => {
                let _none = self.openings.insert(slot, Opening { cell, plan, passed, begun, opener });
                return Ok(());
            }
            None => Err(opener.too_late()),
        };
        // One that has answered, whatever it was, can be asked again.
        if part == Part::Opened && self.opener.is_none() && !matches!(trees, Err(LaunchFault::Stage { .. })) {
            self.set_aside(opener)?;
        } else {
            self.bury(opener);
        }
        self.reap_openers();
        let trees = match trees {
            Ok(trees) => trees,
            Err(fault) => return self.drop_opening(cell, slot, fault),
        };
        let packet = match recall(plan) {
            Ok(packet) => packet,
            Err(source) => return Err(LauncherError::Call { what: "read a plan back", source }),
        };
        let message = postcard::from_bytes(&packet).map_err(|source| LauncherError::Decode { source })?;
        match message {
            ToLauncher::Arm { prepare, .. } => {
                self.raise((cell, slot), (&prepare, self.terms()), begun, (passed, trees))
            }
            ToLauncher::Go { .. } | ToLauncher::Kill { .. } | ToLauncher::Look { .. } | ToLauncher::Survey { .. } => {
                self.drop_opening(cell, slot, bad_plan("the plan has changed"))
            }
        }
    }

    /// Ends an opening that nobody wants any more; `false` if there is none.
    pub(super) fn kill_opening(&mut self, slot: u32, reason: KillReason) -> Result<bool, LauncherError> {
        let Some(opening) = self.openings.remove(&slot) else { return Ok(false) };
        self.bury(opening.opener);
        self.reap_openers();
        self.drop_opening(opening.cell, slot, LaunchFault::Killed { reason }).map(|()| true)
    }

    fn drop_opening(&mut self, cell: CellId, slot: u32, fault: LaunchFault) -> Result<(), LauncherError> {
        self.give_back(cell, slot);
        self.refuse(cell, fault)
    }

    /// An opener that has been asked: the one at hand, or, where there is none or it is of no use any more, a new one.
    fn ask_opener(&mut self, slot: u32, prepare: &Prepare<'_>) -> Result<Opener, LaunchFault> {
        if let Some(mut idle) = self.opener.take() {
            match idle.ask(slot, &prepare.mounts, &prepare.caller) {
                Ok(()) => return Ok(idle),
                Err(fault) => {
                    tracing::warn!(?fault, "the opener of mounts is replaced");
                    self.bury(idle);
                }
            }
        }
        let mut opener = Opener::start(self.shop.opening_rules())?;
        match opener.ask(slot, &prepare.mounts, &prepare.caller) {
            Ok(()) => Ok(opener),
            Err(fault) => {
                self.bury(opener);
                Err(fault)
            }
        }
    }

    /// Keeps an opener for the next plan.
    fn set_aside(&mut self, opener: Opener) -> Result<(), LauncherError> {
        for fd in opener.sources() {
            rustix::event::epoll::delete(&self.epoll, fd)
                .map_err(|errno| LauncherError::Call { what: "epoll_ctl", source: errno.into() })?;
        }
        self.opener = Some(opener);
        Ok(())
    }

    pub(super) fn bury(&mut self, opener: Opener) {
        let (child, uid) = opener.into_child();
        self.stuck.push(Stuck { child, uid, since_us: monotonic_us() });
    }

    /// Reaps children that have opened what they were to, and kills those that will not.
    pub(super) fn reap_openers(&mut self) {
        self.stuck.retain(|one| !opener::is_gone(&one.child));
    }
}

/// A memory file with the packet.
fn keep(packet: &[u8]) -> std::io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("plan", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(packet)?;
    Ok(file.into())
}

/// The packet, in memory that is wiped when it is dropped.
fn recall(plan: OwnedFd) -> std::io::Result<Wiped> {
    let mut file = std::fs::File::from(plan);
    file.rewind()?;
    // As large as it can get at once: a vector that grows leaves copies behind.
    let mut packet = Wiped::with_capacity(PACKET_MAX_BYTES + 1);
    let _bytes = file.read_to_end(&mut packet)?;
    Ok(packet)
}
