//! What the daemon asks for: cells to be armed, let go, killed.

use std::os::fd::OwnedFd;

use toolcell_types::CellId;
use toolcell_types::plan::{KillReason, LaunchFault, Prepare, ToLauncher};

use super::{Launcher, LauncherError, bad_plan};
use crate::hostpaths::Tree;
use crate::link::LinkError;
use crate::live::Live;
use crate::readback::Terms;
use crate::wiped::Wiped;
use crate::workshop::{Begun, Passed, end_at_once};

/// Most packets taken in before the clocks have their turn.
const PACKETS_A_TURN: usize = 64;
/// Most messages that wait for a daemon that does not read: two a cell is what an honest one can have.
const OUTBOX_MAX: usize = 4096;

impl Launcher {
    pub(super) fn on_packets(&mut self) -> Result<(), LauncherError> {
        let link = |source| LauncherError::Link { source };
        self.link.flush().map_err(link)?;
        // Bounded: the clocks of all cells have their turn in between.
        for _packet in 0..PACKETS_A_TURN {
            if self.link.waiting() > OUTBOX_MAX {
                return Err(LauncherError::Link { source: LinkError::Unread });
            }
            let Some(fds) = self.link.receive().map_err(link)? else { break };
            // A copy that is wiped when it is dropped, and nothing left in the inbox: the next cell is a copy of this
            // memory.
            let packet = Wiped::new(self.link.packet().to_vec());
            self.link.wipe();
            self.on_packet(&packet, fds)?;
        }
        Ok(())
    }

    fn on_packet(&mut self, packet: &[u8], fds: Vec<OwnedFd>) -> Result<(), LauncherError> {
        let message = postcard::from_bytes(packet).map_err(|source| LauncherError::Decode { source })?;
        match message {
            ToLauncher::Go { cell } => {
                if let Some(live) = self.slots.get(&cell).and_then(|slot| self.cells.get_mut(slot)) {
                    live.on_go();
                }
                Ok(())
            }
            ToLauncher::Kill { cell, reason } => self.on_kill(cell, reason),
            ToLauncher::Look { cell } => self.on_look(cell),
            ToLauncher::Survey { cell, act } => self.on_survey(cell, act, &fds),
            ToLauncher::Arm { cell, has_stdin, prepare } => {
                let mut fds = fds.into_iter();
                let passed = match (fds.next(), fds.next(), fds.next()) {
                    (Some(go), None, None) if !has_stdin => Passed { go, stdin: None, program: None },
                    (Some(go), Some(stdin), None) if has_stdin => Passed { go, stdin: Some(stdin), program: None },
                    _ => return self.refuse(cell, bad_plan("the descriptors do not fit the message")),
                };
                let slot = match self.free_slot(cell) {
                    Ok(slot) => slot,
                    Err(fault) => return self.refuse(cell, fault),
                };
                if prepare.mounts.is_empty() {
                    return self.begin_and_raise((cell, slot), &prepare, passed, self.terms());
                }
                self.open_first((cell, slot), &prepare, passed, packet)
            }
        }
    }

    /// A slot for a new cell of this number.
    pub(super) fn free_slot(&self, cell: CellId) -> Result<u32, LaunchFault> {
        if self.slots.contains_key(&cell) {
            return Err(bad_plan("this cell number is in use"));
        }
        self.free.first().copied().ok_or_else(|| bad_plan("no cell is free"))
    }

    fn on_kill(&mut self, cell: CellId, reason: KillReason) -> Result<(), LauncherError> {
        // Unknown or ended cells are passed over: the end may be on its way.
        let Some(slot) = self.slots.get(&cell).copied() else { return Ok(()) };
        if !self.kill_opening(slot, reason)?
            && let Some(live) = self.cells.get_mut(&slot)
        {
            live.on_kill(reason);
        }
        Ok(())
    }

    /// Builds a cell without mounts of a caller's.
    pub(super) fn begin_and_raise(
        &mut self,
        (cell, slot): (CellId, u32),
        prepare: &Prepare<'_>,
        passed: Passed,
        terms: Terms,
    ) -> Result<(), LauncherError> {
        match self.shop.begin(slot, prepare) {
            Ok(begun) => self.raise((cell, slot), (prepare, terms), begun, (passed, Vec::new())),
            Err(fault) => self.refuse(cell, fault),
        }
    }

    /// Builds the cell, whose mounts are open.
    pub(super) fn raise(
        &mut self,
        (cell, slot): (CellId, u32),
        (prepare, terms): (&Prepare<'_>, Terms),
        begun: Begun,
        passed: (Passed, Vec<Tree>),
    ) -> Result<(), LauncherError> {
        let limits = prepare.limits;
        let fault = match self.shop.build((cell, slot), prepare, begun, passed) {
            Ok(built) => match Live::new(cell, built, (limits, terms), self.processors) {
                Ok(live) => {
                    self.admit(cell, slot, live)?;
                    return self.tell_of(cell, slot);
                }
                Err((errno, mut built)) => {
                    end_at_once(&built.init);
                    let detail = "timerfd_create".to_owned();
                    let errno = errno.raw_os_error();
                    let fault = LaunchFault::Stage { stage: "clocks".to_owned(), errno, detail };
                    if built.group.remove().is_err() {
                        // Until it is gone nobody else gets these ids.
                        let (_slot, _was_free) = (self.slots.remove(&cell), self.free.remove(&slot));
                        self.remains.push((built.group, Some(slot)));
                        return self.refuse(cell, fault);
                    }
                    fault
                }
            },
            Err(fault) => fault,
        };
        self.give_back(cell, slot);
        self.refuse(cell, fault)
    }

    /// A slot that was taken for a cell that will not be.
    pub(super) fn give_back(&mut self, cell: CellId, slot: u32) {
        let _slot = self.slots.remove(&cell);
        let _was_taken = self.free.insert(slot);
    }
}
