//! Plans with mounts of the caller's: their paths are opened by a child first, and only then is the cell built.
//!
//! The plan waits in a memory file meanwhile, not in memory: a cell of somebody else that is cloned in between must not
//! find it.

use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use toolcell_types::CellId;
use toolcell_types::plan::{KillReason, LaunchFault, PACKET_MAX_BYTES, Prepare, ToLauncher};
use zeroize::Zeroizing;

use super::source::{OPENING_PARTS, Part, Source};
use super::{Launcher, LauncherError, bad_plan};
use crate::opener::{self, Opener};
use crate::workshop::Passed;

/// Most children that could not be killed: each holds a process; beyond that, mounts are refused.
const STUCK_MAX: usize = 64;

/// A plan whose mounts are being opened.
#[derive(Debug)]
pub(super) struct Opening {
    cell: CellId,
    plan: OwnedFd,
    passed: Passed,
    opener: Opener,
}

impl Launcher {
    /// Starts opening; the cell is built when the answer is there.
    pub(super) fn open_first(
        &mut self,
        (cell, slot): (CellId, u32),
        prepare: &Prepare<'_>,
        passed: Passed,
        packet: &[u8],
    ) -> Result<(), LauncherError> {
        if self.stuck.len() >= STUCK_MAX {
            return self.refuse(cell, opener::too_late());
        }
        let started = crate::workshop::validate(prepare).and_then(|()| {
            let plan = keep(packet).map_err(|error| LaunchFault::Stage {
                stage: "mounts".to_owned(),
                errno: error.raw_os_error().unwrap_or(nix::libc::EIO),
                detail: "keep the plan".to_owned(),
            })?;
            Ok((plan, Opener::start(&prepare.mounts, &prepare.caller, &self.shop.denied)?))
        });
        let (plan, opener) = match started {
            Ok(started) => started,
            Err(fault) => return self.refuse(cell, fault),
        };
        for (fd, part) in opener.sources().into_iter().zip(OPENING_PARTS) {
            self.watch(fd, Source::Cell(slot, part))?;
        }
        let _was_free = self.free.remove(&slot);
        let _none = self.slots.insert(cell, slot);
        let _none = self.openings.insert(slot, Opening { cell, plan, passed, opener });
        Ok(())
    }

    /// The child has answered, or will not.
    pub(super) fn on_opening(&mut self, slot: u32, part: Part) -> Result<(), LauncherError> {
        let Some(opening) = self.openings.remove(&slot) else { return Ok(()) };
        let Opening { cell, plan, passed, opener } = opening;
        let trees = if part == Part::Opened { opener.take() } else { Err(opener::too_late()) };
        self.stuck.push(opener.into_child());
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
            ToLauncher::Arm { prepare, .. } => self.raise((cell, slot), &prepare, passed, trees),
            ToLauncher::Go { .. } | ToLauncher::Kill { .. } => {
                self.drop_opening(cell, slot, bad_plan("the plan has changed"))
            }
        }
    }

    /// Ends an opening that nobody wants any more; `false` if there is none.
    pub(super) fn kill_opening(&mut self, slot: u32, reason: KillReason) -> Result<bool, LauncherError> {
        let Some(opening) = self.openings.remove(&slot) else { return Ok(false) };
        self.stuck.push(opening.opener.into_child());
        self.reap_openers();
        self.drop_opening(opening.cell, slot, LaunchFault::Killed { reason }).map(|()| true)
    }

    fn drop_opening(&mut self, cell: CellId, slot: u32, fault: LaunchFault) -> Result<(), LauncherError> {
        self.give_back(cell, slot);
        self.refuse(cell, fault)
    }

    /// Reaps children that have opened what they were to, and kills those that will not.
    pub(super) fn reap_openers(&mut self) {
        self.stuck.retain(|child| !opener::is_gone(child));
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
fn recall(plan: OwnedFd) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut file = std::fs::File::from(plan);
    file.rewind()?;
    // As large as it can get at once: a vector that grows leaves copies behind.
    let mut packet = Zeroizing::new(Vec::with_capacity(PACKET_MAX_BYTES + 1));
    let _bytes = file.read_to_end(&mut packet)?;
    Ok(packet)
}
