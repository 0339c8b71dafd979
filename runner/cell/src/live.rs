//! One live cell: what it waits for, what was seen of it, and how it is brought to its end.
//!
//! `setting up → armed → running → dying → gone`. Every step is taken when a descriptor says so; nothing here blocks.

mod arming;
mod ending;
mod records;

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use toolcell_types::plan::{ARMED_MAX_MS, EndReport, KillReason, LaunchFault};
use toolcell_types::{CellId, ControlId, ControlReport, Limits};

use crate::begun::Requested;
use crate::cgroup::Counters;
use crate::clock::{Timer, monotonic_us};
use crate::readback::{Outside, Terms};
use crate::record::{MainEnd, Op, Probes, RECORD_BYTES, Record, Stage, StageError};
use crate::verdict::OwnKill;
use crate::workshop::{Built, Workshop};

/// How long a cell may take to be set up, microseconds. Far above what it takes on a loaded machine.
const SETUP_LIMIT_US: u64 = 20_000_000;
/// How long a tree may take to be gone after its kill, microseconds, before that is given up and said.
const DYING_LIMIT_US: u64 = 20_000_000;
/// Shortest and longest pause between two looks at a dying tree, microseconds.
const DYING_ROUND_US: u64 = 1_000;
const DYING_ROUND_MAX_US: u64 = 20_000;
/// How long the death of the init may take to reach everybody before members are killed by name, microseconds.
const DYING_PATIENCE_US: u64 = 20_000;
/// Shortest pause between two looks at the processor clock, microseconds.
const CPU_ROUND_US: u64 = 1_000;

/// A clock of a cell, as it shows up in the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// Set-up limit, then the wall limit.
    Wall,
    /// Next look at the processor time.
    Cpu,
    /// Next look at a dying tree.
    Round,
}

/// What the loop has to do after an event.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing.
    Wait,
    /// Tell the daemon that the cell waits for *go*, with the read ends of its output.
    Armed(Vec<ControlReport>, Vec<OwnedFd>),
    /// It is over: take it off and tell the daemon.
    Over(Over),
}

/// The last word about a cell.
#[derive(Debug)]
pub(crate) enum Over {
    /// No tool ran.
    Refused(LaunchFault, bool),
    /// The tool ran.
    Ended(EndReport),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    SettingUp,
    Armed,
    Running,
    Dying { since_us: u64, reaped: bool },
}

/// A cell between clone and removal.
#[derive(Debug)]
pub(crate) struct Live {
    id: CellId,
    built: Built,
    limits: Limits,
    terms: Terms,
    /// Processors of this machine: how fast the tree can use up its time.
    processors: u64,
    phase: Phase,
    wall: Timer,
    cpu: Timer,
    round: Timer,
    outputs: Option<(OwnedFd, OwnedFd)>,
    /// What the daemon was told that the controls are asked for.
    told: Option<Requested>,
    /// The process that said that it is armed.
    armed_by: Option<i32>,
    scratch: Option<OwnedFd>,
    /// Blocks and inodes that were free in the scratch when the tree was killed.
    scratch_free: Option<(u64, u64)>,
    go_us: u64,
    baseline: Counters,
    fault: Option<LaunchFault>,
    own_kill: Option<OwnKill>,
    main: Option<(MainEnd, u64)>,
    exec_failed: Option<StageError>,
    left_running: Option<u64>,
}

impl Live {
    /// Takes over a cell that was just cloned.
    pub(crate) fn new(
        id: CellId,
        mut built: Built,
        (limits, terms): (Limits, Terms),
        processors: u64,
    ) -> Result<Self, (Errno, Built)> {
        let timers = Timer::new().and_then(|wall| Ok((wall, Timer::new()?, Timer::new()?)));
        let timers = timers.and_then(|timers| timers.0.start(SETUP_LIMIT_US).map(|()| timers));
        let (wall, cpu, round) = match timers {
            Ok(timers) => timers,
            Err(errno) => return Err((errno, built)),
        };
        let outputs = built.outputs.take();
        Ok(Self {
            id,
            built,
            limits,
            terms,
            processors,
            phase: Phase::SettingUp,
            wall,
            cpu,
            round,
            outputs,
            told: None,
            armed_by: None,
            scratch: None,
            scratch_free: None,
            go_us: 0,
            baseline: Counters::default(),
            fault: None,
            own_kill: None,
            main: None,
            exec_failed: None,
            left_running: None,
        })
    }

    /// The limits, if it is a call's cell without mounts: of such all else is the same.
    pub(crate) fn limits_of_a_plain_call(&self) -> Option<Limits> {
        let is_plain = !self.built.has_mounts && !self.terms.is_survey && self.built.off.is_empty();
        is_plain.then_some(self.limits)
    }

    /// The daemon was told what the controls are asked for.
    pub(crate) fn was_told(&mut self, requested: Requested) {
        self.told = Some(requested);
    }

    pub(super) fn is_on(&self, id: ControlId) -> bool {
        !self.built.off.has(id)
    }

    /// What to poll: control socket, init's pidfd, and the three clocks.
    pub(crate) fn sources(&self) -> [std::os::fd::BorrowedFd<'_>; 5] {
        [
            self.built.control.as_fd(),
            self.built.init.pidfd.as_fd(),
            self.wall.as_fd(),
            self.cpu.as_fd(),
            self.round.as_fd(),
        ]
    }

    /// Records are there, or the cell's end of the socket is closed.
    pub(crate) fn on_record(&mut self, shop: &Workshop, outside: &Outside) -> Step {
        match self.drain_records() {
            Some(probes) => self.on_armed(probes, shop, outside),
            None => Step::Wait,
        }
    }

    /// Takes in every record that is waiting; gives back the probes if the tool's process is armed.
    fn drain_records(&mut self) -> Option<Probes> {
        let mut armed = None;
        loop {
            let mut bytes = [0_u8; RECORD_BYTES];
            let (filled, sender) = match records::receive(&self.built.control, &mut bytes) {
                Ok(received) => received,
                Err(Errno::AGAIN) => return armed,
                Err(_gone) => (0, None),
            };
            match bytes.get(..filled).and_then(Record::decode) {
                Some(Record::Failed(error)) => self.on_failure(error),
                Some(Record::Armed(probes)) if self.phase == Phase::SettingUp => {
                    self.armed_by = sender;
                    armed = Some(probes);
                }
                Some(Record::Ended { end, at_us }) => self.on_main_end(end, at_us),
                // Closed, or a record that this phase does not know: the init's own end says the rest.
                Some(Record::Armed(_)) | None => {
                    self.kill_tree();
                    return None;
                }
            }
        }
    }

    fn on_failure(&mut self, error: StageError) {
        if self.phase == Phase::Running {
            // The main process itself ends right after; its record follows.
            self.exec_failed = Some(error);
            return;
        }
        if self.fault.is_none() {
            self.fault = Some(self.fault_of(error));
        }
        self.kill_tree();
    }

    /// A mount step that failed at one of the caller's mounts says at which.
    fn fault_of(&self, error: StageError) -> LaunchFault {
        let what = format!("{}: {}", error.op.as_str(), toolcell_types::names::errno(error.errno));
        if error.op == Op::Loosen {
            // As of an ordinary user's and a container's mounts, which come from a more privileged mount namespace.
            let is_root = !self.is_on(ControlId::RootReadonly);
            return LaunchFault::Control {
                id: if is_root { ControlId::RootReadonly } else { ControlId::MountsNosuidNodev },
                detail: format!("it cannot be switched off here, as flags of the machine's mounts are locked: {what}"),
                remedy: "leave it on here, or start the instance as root of the machine".to_owned(),
            };
        }
        if error.stage == Stage::Mounts && matches!(error.op, Op::CallerPoint | Op::CallerAttach) {
            return LaunchFault::Mount { index: error.index, errno: error.errno, detail: what };
        }
        LaunchFault::Stage {
            stage: error.stage.as_str().to_owned(),
            errno: error.errno,
            detail: format!("{what} (item {})", error.index),
        }
    }

    /// How long the tree needs at least, at its highest rate, to use up what it has left.
    fn cpu_pause_us(&self, used_us: u64) -> u64 {
        let left_us = self.cpu_limit_us().saturating_sub(used_us);
        // Not by the share: system calls that run long go into the quota's debt, and use more than it at first.
        (left_us / self.processors.max(1)).max(CPU_ROUND_US)
    }

    fn cpu_used_us(&self) -> Option<u64> {
        let now = self.built.group.cpu().ok()?;
        Some(now.since(self.baseline.cpu.unwrap_or_default()).total)
    }

    fn cpu_limit_us(&self) -> u64 {
        self.limits.cpu_ms.saturating_mul(1000)
    }

    fn on_main_end(&mut self, end: MainEnd, at_us: u64) {
        if self.main.is_none() && self.go_us > 0 {
            self.main = Some((end, at_us));
            let others = self.built.group.members().map(|members| members.len().saturating_sub(1));
            self.left_running = others.ok().and_then(|count| u64::try_from(count).ok());
        }
        self.kill_tree();
    }

    /// One of the cell's clocks has expired.
    pub(crate) fn on_alarm(&mut self, alarm: Alarm) -> Step {
        // A record that is waiting was sent before this alarm: the end that it tells of comes first.
        if self.phase == Phase::Running && self.drain_records().is_some() {
            self.kill_tree();
        }
        match (alarm, self.phase) {
            (Alarm::Wall, Phase::SettingUp) => {
                let _first = self.fault.get_or_insert(LaunchFault::Stage {
                    stage: "set-up".to_owned(),
                    errno: nix::libc::ETIMEDOUT,
                    detail: format!("not ready within {} s", SETUP_LIMIT_US / 1_000_000),
                });
                self.kill_tree();
            }
            (Alarm::Wall, Phase::Armed) => {
                let _first = self.fault.get_or_insert(LaunchFault::Stage {
                    stage: "armed".to_owned(),
                    errno: nix::libc::ETIMEDOUT,
                    detail: format!("not let go within {ARMED_MAX_MS} ms"),
                });
                self.kill_tree();
            }
            (Alarm::Wall, Phase::Running) => self.kill_for(OwnKill::Wall),
            (Alarm::Cpu, Phase::Running) => self.look_at_cpu(),
            (Alarm::Round, Phase::Dying { .. }) => return self.look_at_dying(),
            (Alarm::Wall | Alarm::Cpu, Phase::Dying { .. })
            | (Alarm::Cpu, Phase::SettingUp | Phase::Armed)
            | (Alarm::Round, Phase::SettingUp | Phase::Armed | Phase::Running) => {}
        }
        Step::Wait
    }

    fn look_at_cpu(&mut self) {
        match self.cpu_used_us() {
            Some(used) if used < self.cpu_limit_us() => {
                if let Err(errno) = self.cpu.start(self.cpu_pause_us(used)) {
                    tracing::error!(cell = %self.id, error = %errno, "the processor clock cannot go on, so the cell is killed");
                    self.kill_for(OwnKill::Cpu);
                }
            }
            // A counter that cannot be read any more is no reason to let it run on.
            Some(_) | None => self.kill_for(OwnKill::Cpu),
        }
    }

    /// The daemon asks for the end.
    pub(crate) fn on_kill(&mut self, reason: KillReason) {
        match self.phase {
            Phase::SettingUp | Phase::Armed => {
                let _first = self.fault.get_or_insert(LaunchFault::Killed { reason });
                self.kill_tree();
            }
            Phase::Running => self.kill_for(OwnKill::Asked(reason)),
            Phase::Dying { .. } => {}
        }
    }

    fn kill_for(&mut self, kill: OwnKill) {
        let _first = self.own_kill.get_or_insert(kill);
        self.kill_tree();
    }

    /// SIGKILL to the init: the kernel then kills all of its pid namespace and lets the init end last
    /// (pid_namespaces(7)). Whatever comes later makes sure.
    pub(crate) fn kill_tree(&mut self) {
        if matches!(self.phase, Phase::Dying { .. }) {
            return;
        }
        self.phase = Phase::Dying { since_us: monotonic_us(), reaped: false };
        // Let go before the tree dies: the last reference to the scratch frees it, and that is the cell's time, not ours.
        let scratch = self.scratch.take().and_then(|scratch| rustix::fs::fstatfs(scratch).ok());
        self.scratch_free = scratch.map(|stat| (stat.f_bfree, stat.f_ffree));
        match pidfd_send_signal(&self.built.init.pidfd, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => tracing::error!(cell = %self.id, error = %errno, "cannot kill a cell's init"),
        }
        if let Err(errno) = self.round.start(DYING_ROUND_US) {
            tracing::error!(cell = %self.id, error = %errno, "cannot start the clock of a dying cell");
        }
    }

    /// The init has ended: on its own (killed for memory, say) or by our kill.
    pub(crate) fn on_init_end(&mut self) -> Step {
        // What it sent before its end is still in the socket.
        if self.drain_records().is_some() {
            let _first = self.fault.get_or_insert(LaunchFault::Stage {
                stage: Stage::Supervise.as_str().to_owned(),
                errno: nix::libc::ECHILD,
                detail: "the cell's init ended before the tool was let go".to_owned(),
            });
        }
        self.kill_tree();
        self.look_at_dying()
    }

    /// Removes the groups; a group that is still busy comes back to be tried again.
    pub(crate) fn into_group(self) -> crate::cgroup::Cgroup {
        self.built.group
    }
}
