//! The launcher's loop: one thread, one epoll, every event a step of one cell or the end of everything.

mod clean_up;
mod opening;
mod packets;
mod source;
mod survey;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_send_signal, waitid};
use toolcell_types::plan::{FromLauncher, LaunchFault};
use toolcell_types::{CellId, ControlId};
use zeroize::Zeroize as _;

use self::opening::{Opening, Stuck};
use self::source::{OPENING_PARTS, PARTS, Part, Source};
use crate::begun::Known;
use crate::cgroup::{Cgroup, Instance};
use crate::config::LauncherConfig;
use crate::devtree::DevTree;
use crate::error::LauncherError;
use crate::hostpaths::{Denied, Deputy};
use crate::link::{Link, LinkError};
use crate::live::{Live, Over, Step};
use crate::opener::Opener;
use crate::readback::{Outside, Terms, describe};
use crate::stages::{Filters, best_abi};
use crate::workshop::Workshop;

/// From the end of the daemon's sockets to that of its process: it waits a second for its own threads.
const LEAVE_PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Runs until the daemon or the signer ends, or a signal asks for the end. Kills every cell before it returns and
/// removes what it made.
///
/// # Errors
/// [`LauncherError`]: something that the launcher needs is not there, or a part ended badly.
pub fn run(config: LauncherConfig) -> Result<(), LauncherError> {
    let mut launcher = Launcher::start(config)?;
    tracing::info!(landlock = ?launcher.shop.landlock, "launcher is ready");
    let ended = launcher.serve();
    let cleaned = launcher.clean_up();
    // The first error is the reason; a failed clean-up is added to the log, not put in its place.
    match (ended, cleaned) {
        (Err(error), Err(second)) => {
            tracing::error!(error = %describe(&second), "clean-up failed as well");
            Err(error)
        }
        (Err(error), Ok(())) | (Ok(()), Err(error)) => Err(error),
        (Ok(()), Ok(())) => Ok(()),
    }
}

struct Launcher {
    shop: Workshop,
    outside: Outside,
    link: Link,
    /// Whether the loop hears of room in the link's socket.
    is_told_of_room: bool,
    daemon: OwnedFd,
    signer: OwnedFd,
    signals: SignalFd,
    epoll: OwnedFd,
    /// By slot, which also gives the cell its ids.
    cells: BTreeMap<u32, Live>,
    slots: BTreeMap<CellId, u32>,
    /// Plans whose mounts are being opened, by slot.
    openings: BTreeMap<u32, Opening>,
    /// Who opens the next plan's mounts, if nobody else's are being opened.
    opener: Option<Opener>,
    /// Children that opened mounts and are not reaped yet.
    stuck: Vec<Stuck>,
    /// Controls that the operator accepted as unavailable; not the daemon's to say.
    accepted: Vec<ControlId>,
    free: BTreeSet<u32>,
    /// Of each slot, the turn that it is in; and the last of all.
    turns: BTreeMap<u32, u32>,
    turn: u32,
    /// What cells of a slot were asked for.
    known: Known,
    /// What a survey's probe looks for, until the next step of the survey.
    outside_cells: Option<crate::survey::Outside>,
    /// The runtime directory, which no cell shows.
    runtime: std::path::PathBuf,
    /// Groups that were still busy when their cell was over, with the slot whose ids may still be in use.
    remains: Vec<(Cgroup, Option<u32>)>,
    processors: u64,
    asked_to_end: bool,
    unlink: Vec<std::path::PathBuf>,
    _locks: Vec<OwnedFd>,
}

impl std::fmt::Debug for Launcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launcher").field("cells", &self.cells.len()).finish_non_exhaustive()
    }
}

impl Launcher {
    fn start(config: LauncherConfig) -> Result<Self, LauncherError> {
        let call = |what: &'static str| move |source: std::io::Error| LauncherError::Call { what, source };
        let signals = [NixSignal::SIGTERM, NixSignal::SIGINT, NixSignal::SIGHUP].into_iter().collect::<SigSet>();
        signals.thread_block().map_err(|errno| call("block signals")(errno.into()))?;
        let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(|errno| call("signalfd")(errno.into()))?;
        let shop = Workshop {
            groups: Instance::open(config.cgroup_parent.as_deref(), &config.instance)
                .map_err(|source| LauncherError::Groups { source })?,
            dev: DevTree::build(&config.runtime_dir, &config.instance).map_err(call("make the template of /dev"))?,
            filters: Filters::compile().map_err(|error| LauncherError::Filters { detail: describe(&error) })?,
            landlock: best_abi().ok_or(LauncherError::NoLandlock)?,
            denied: Denied::new(&config.deny_paths).map_err(call("look at the instance's own directories"))?,
            ids: config.ids,
            deputy: if config.is_rootless { Deputy::OwnUser } else { Deputy::AnyUser },
            is_ablation: config.is_ablation,
        };
        let outside = Outside::read().map_err(|error| LauncherError::Outside { detail: describe(&error) })?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|errno| call("epoll_create1")(errno.into()))?;
        let mut launcher = Self {
            shop,
            outside,
            link: Link::new(config.daemon).map_err(|source| LauncherError::Link { source })?,
            is_told_of_room: false,
            daemon: config.daemon_pidfd,
            signer: config.signer_pidfd,
            signals,
            epoll,
            cells: BTreeMap::new(),
            slots: BTreeMap::new(),
            openings: BTreeMap::new(),
            opener: None,
            stuck: Vec::new(),
            accepted: config.accept_unavailable,
            free: (0..config.ids.cells()).collect(),
            turns: BTreeMap::new(),
            turn: 0,
            known: Known::default(),
            outside_cells: None,
            runtime: config.runtime_dir,
            remains: Vec::new(),
            processors: std::thread::available_parallelism().map_or(1, |count| u64::try_from(count.get()).unwrap_or(1)),
            asked_to_end: false,
            unlink: config.unlink,
            _locks: config.locks,
        };
        // While there is the least to copy. Where it cannot be had now, it is tried when it is needed.
        match Opener::start(launcher.shop.opening_rules()) {
            Ok(opener) => launcher.opener = Some(opener),
            Err(fault) => tracing::warn!(?fault, "no opener of mounts yet"),
        }
        launcher.watch(launcher.link.as_fd(), Source::Daemon)?;
        launcher.watch(launcher.daemon.as_fd(), Source::DaemonEnd)?;
        launcher.watch(launcher.signer.as_fd(), Source::SignerEnd)?;
        launcher.watch(launcher.signals.as_fd(), Source::Signal)?;
        Ok(launcher)
    }

    /// A cell's descriptors report each change once (EPOLLET): its socket and its pidfd stay readable once the init
    /// has ended, and every handler takes in all there is.
    fn watch(&self, fd: BorrowedFd<'_>, source: Source) -> Result<(), LauncherError> {
        let edge = if matches!(source, Source::Cell { .. }) { EventFlags::ET } else { EventFlags::empty() };
        epoll::add(&self.epoll, fd, EventData::new_u64(source.token()), EventFlags::IN | edge)
            .map_err(|errno| LauncherError::Call { what: "epoll_ctl", source: errno.into() })
    }

    fn serve(&mut self) -> Result<(), LauncherError> {
        loop {
            for source in self.wait()? {
                match source {
                    Source::Daemon => match self.on_packets() {
                        Err(closed @ LauncherError::Link { source: LinkError::Closed }) => {
                            return self.daemon_leaves(closed);
                        }
                        other => other?,
                    },
                    Source::DaemonEnd => return self.part_ended("daemon"),
                    Source::SignerEnd => {
                        return match self.part_ended("signer") {
                            Err(ended @ LauncherError::PartEnded { code: Some(0), .. }) => self.daemon_leaves(ended),
                            other => other,
                        };
                    }
                    Source::Signal => self.on_signal()?,
                    // Whoever had the slot before and is gone may still be in this batch.
                    Source::Cell { slot, turn, part } if self.turns.get(&slot) == Some(&turn) => {
                        self.on_cell(slot, part)?;
                    }
                    Source::Cell { .. } => {}
                }
            }
            self.clear_remains();
            self.reap_openers();
        }
    }

    /// Waits for events. Records come before alarms, so that an end which was seen in time is not the clock's.
    fn wait(&mut self) -> Result<Vec<Source>, LauncherError> {
        if self.link.wants_to_send() != self.is_told_of_room {
            self.is_told_of_room = self.link.wants_to_send();
            let room = if self.is_told_of_room { EventFlags::OUT } else { EventFlags::empty() };
            let token = EventData::new_u64(Source::Daemon.token());
            epoll::modify(&self.epoll, self.link.as_fd(), token, EventFlags::IN | room)
                .map_err(|errno| LauncherError::Call { what: "epoll_ctl", source: errno.into() })?;
        }
        let mut events = Vec::<Event>::with_capacity(64);
        // Groups that stayed behind are tried again even when nothing else happens.
        let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let pause = (!self.remains.is_empty() || !self.stuck.is_empty()).then_some(&pause);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), pause) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(errno) => return Err(LauncherError::Call { what: "epoll_wait", source: errno.into() }),
        }
        let mut sources: Vec<Source> = events.iter().filter_map(|event| Source::from_token(event.data.u64())).collect();
        sources.sort_by_key(|source| {
            u8::from(matches!(source, Source::Cell { part: Part::Alarm(_) | Part::OpeningLate, .. }))
        });
        Ok(sources)
    }

    /// A new turn for the slot: what still comes of the one before is nobody's.
    fn next_turn(&mut self, slot: u32) -> u32 {
        self.turn = self.turn.wrapping_add(1);
        let _before = self.turns.insert(slot, self.turn);
        self.turn
    }

    fn admit(&mut self, cell: CellId, slot: u32, live: Live) -> Result<(), LauncherError> {
        let turn = self.next_turn(slot);
        for (fd, part) in live.sources().into_iter().zip(PARTS) {
            self.watch(fd, Source::Cell { slot, turn, part })?;
        }
        let _was_free = self.free.remove(&slot);
        let _none = self.slots.insert(cell, slot);
        let _none = self.cells.insert(slot, live);
        Ok(())
    }

    /// Tells the daemon what a cell that was just admitted is asked for, if that is known.
    fn tell_of(&mut self, cell: CellId, slot: u32) -> Result<(), LauncherError> {
        let Some(live) = self.cells.get_mut(&slot) else { return Ok(()) };
        let Some(requested) = live.limits_of_a_plain_call().and_then(|limits| self.known.of(slot, &limits)) else {
            return Ok(());
        };
        let message = FromLauncher::Begun { cell, requested: requested.to_vec() };
        live.was_told(requested);
        self.link.send(&message, Vec::new()).map_err(|source| LauncherError::Link { source })
    }

    /// How calls are judged: what the operator accepted is the launcher's own to know.
    fn terms(&self) -> Terms {
        Terms { accepted: self.accepted.clone(), is_survey: false }
    }

    fn refuse(&mut self, cell: CellId, fault: LaunchFault) -> Result<(), LauncherError> {
        let mut message = FromLauncher::Refused { cell, fault, tree_gone: true };
        let said = self.link.send(&message, Vec::new()).map_err(|source| LauncherError::Link { source });
        // It may name a path of the caller's, and the next cell is a copy of this memory.
        if let FromLauncher::Refused { fault: LaunchFault::Mount { detail, .. }, .. } = &mut message {
            detail.zeroize();
        }
        said
    }

    fn on_cell(&mut self, slot: u32, part: Part) -> Result<(), LauncherError> {
        if OPENING_PARTS.contains(&part) {
            return self.on_opening(slot, part);
        }
        let Some(live) = self.cells.get_mut(&slot) else { return Ok(()) };
        let step = match part {
            Part::Records => live.on_record(&self.shop, &self.outside),
            Part::InitEnd => live.on_init_end(),
            Part::Alarm(alarm) => live.on_alarm(alarm),
            Part::Opened | Part::OpeningLate => Step::Wait,
        };
        self.after(slot, step)
    }

    fn after(&mut self, slot: u32, step: Step) -> Result<(), LauncherError> {
        let Some(cell) = self.slots.iter().find(|(_, known)| **known == slot).map(|(cell, _)| *cell) else {
            return Ok(());
        };
        let link = |source| LauncherError::Link { source };
        match step {
            Step::Wait => Ok(()),
            Step::Armed(controls, outputs) => {
                if let Some(live) = self.cells.get(&slot)
                    && let Some(limits) = live.limits_of_a_plain_call()
                {
                    self.known.learn(slot, limits, &controls);
                }
                let said = self.link.send(&FromLauncher::Armed { cell, controls }, outputs).map_err(link);
                // While the daemon signs. Nothing lets the tool go before the loop comes round again.
                if let Some(live) = self.cells.get_mut(&slot) {
                    live.take_baseline();
                }
                said
            }
            Step::Over(over) => {
                if matches!(over, Over::Refused(LaunchFault::Control { .. }, _)) {
                    self.known.forget();
                }
                let message = match over {
                    Over::Refused(fault, tree_gone) => FromLauncher::Refused { cell, fault, tree_gone },
                    Over::Ended(report) => FromLauncher::Ended { cell, report },
                };
                // Said first: that nothing is left of the cell is known by now, and its empty groups are our own matter.
                let said = self.link.send(&message, Vec::new()).map_err(link);
                self.take_off(cell, slot);
                said
            }
        }
    }

    fn take_off(&mut self, cell: CellId, slot: u32) {
        let _slot = self.slots.remove(&cell);
        if let Some(live) = self.cells.remove(&slot) {
            let mut group = live.into_group();
            // EBUSY for a moment after the last process, or for as long as one does not die: tried again with the next
            // events, and until then nobody else gets these ids.
            if group.remove().is_err() {
                self.remains.push((group, Some(slot)));
            } else {
                let _was_taken = self.free.insert(slot);
            }
        }
    }

    /// Tries again to remove what was still busy.
    fn clear_remains(&mut self) {
        let mut still = Vec::new();
        for (mut group, slot) in self.remains.drain(..) {
            if group.remove().is_ok() {
                self.free.extend(slot);
                continue;
            }
            if let Err(error) = group.kill_members() {
                tracing::warn!(error = %describe(&error), "what is left of a cell cannot be killed");
            }
            still.push((group, slot));
        }
        self.remains = still;
    }

    fn on_signal(&mut self) -> Result<(), LauncherError> {
        while let Ok(Some(_signal)) = self.signals.read_signal() {
            if self.asked_to_end {
                return Err(LauncherError::EndedTwice);
            }
            self.asked_to_end = true;
            tracing::info!("asked to end: the daemon finishes what runs");
            match pidfd_send_signal(&self.daemon, Signal::TERM) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => return Err(LauncherError::Call { what: "pidfd_send_signal", source: errno.into() }),
            }
        }
        Ok(())
    }

    /// A daemon that ends lets go of its sockets a moment before it is gone, and the signer ends well when its own is
    /// closed. If the daemon follows at once, how it ended counts; else what was seen of it does.
    fn daemon_leaves(&self, seen: LauncherError) -> Result<(), LauncherError> {
        let mut daemon = [PollFd::new(&self.daemon, PollFlags::IN)];
        match poll(&mut daemon, Some(&LEAVE_PATIENCE)) {
            Ok(1) => self.part_ended("daemon"),
            Ok(_) | Err(_) => Err(seen),
        }
    }

    /// A part that ends takes all others with it; nothing is restarted in place.
    fn part_ended(&self, part: &'static str) -> Result<(), LauncherError> {
        let pidfd = if part == "daemon" { &self.daemon } else { &self.signer };
        let status = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
            .map_err(|errno| LauncherError::Call { what: "waitid", source: errno.into() })?;
        let code = status.as_ref().and_then(WaitIdStatus::exit_status);
        if part == "daemon" && code == Some(0) {
            return Ok(());
        }
        Err(LauncherError::PartEnded { part, code, signal: status.as_ref().and_then(WaitIdStatus::terminating_signal) })
    }
}

fn bad_plan(detail: &str) -> LaunchFault {
    LaunchFault::BadPlan { detail: detail.to_owned() }
}
