//! Supervising one cell: have it built and see that its controls hold; once the intent is signed let it go, read its
//! output, have it killed when asked to or when it prints too much, and see its end.
//!
//! Guarantees: whatever happens after the intent ends in a value that an outcome can be made of, except that the
//! launcher dies (then nobody saw the end, and the next start settles the call). Does not: measure or decide the cause
//! of an end, which is the launcher's; the clocks here only notice a launcher that has fallen silent.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use toolcell_receipts::UnixMicros;
use toolcell_types::plan::{EndReport, KillReason, LaunchFault};
use toolcell_types::{ControlId, ControlReport, ErrorCode, Facts, Problem};

use crate::calls::LiveCall;
use crate::daemon::{Daemon, fault};
use crate::identify::IdentifiedCall;
use crate::intent::{Intended, Pending};
use crate::launcher::{Cell, CellEvent, LauncherError};
use crate::output::{CapturedOutput, Reading};
use crate::plan::{PlanFault, Planned, Prospect};

/// How long the launcher may take beyond what it was told: to build a cell while it builds others, or to empty one.
const SILENCE: Duration = Duration::from_secs(120);
/// For a call whose wall clock is switched off: no machine is up for so long. It ends by itself, or is cancelled.
const NO_LIMIT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A cell that is, or is about to be, ready; or why there is none.
#[derive(Debug)]
pub(crate) enum Hold {
    /// It is being set up, as cells before it were that hold. Dropping it has the cell killed.
    Begun {
        /// The cell.
        cell: Cell,
        /// What each control is asked for, in their order.
        requested: Vec<Facts>,
    },
    /// Whether it holds is known.
    Held(Held),
}

/// A cell that waits to be let go, or why there is none.
#[derive(Debug)]
pub(crate) enum Held {
    /// All controls were seen to hold. Dropping it has the cell killed.
    Armed {
        /// The cell.
        cell: Cell,
        /// All controls.
        controls: Vec<ControlReport>,
        /// Read end of standard output.
        stdout: OwnedFd,
        /// Read end of standard error.
        stderr: OwnedFd,
    },
    /// There will be none: the attempt is over before it began, and its outcome has to say so.
    Over(End),
}

impl Hold {
    /// What a control was asked for, where the launcher has said so.
    pub(crate) fn requested(&self, id: ControlId) -> Facts {
        match self {
            Self::Held(Held::Armed { controls, .. }) => controls
                .iter()
                .find(|report| report.id == id)
                .map(|report| report.requested.clone())
                .unwrap_or_default(),
            Self::Begun { requested, .. } => {
                let both = ControlId::ALL.iter().zip(requested);
                both.into_iter().find(|(one, _)| **one == id).map(|(_, facts)| facts.clone()).unwrap_or_default()
            }
            Self::Held(Held::Over(_)) => Facts::new(),
        }
    }
}

/// A call whose cell is ready.
#[derive(Debug)]
pub(crate) struct Armed {
    asked: IdentifiedCall,
    prospect: Prospect,
    hold: Hold,
}

impl Armed {
    /// Apart, to be carried on.
    pub(crate) fn into_parts(self) -> (IdentifiedCall, Prospect, Hold) {
        (self.asked, self.prospect, self.hold)
    }
}

/// A call whose intent is signed and whose cell waits to be let go, if there is one.
#[derive(Debug)]
pub(crate) struct Ready {
    pending: Pending,
    held: Held,
}

/// How the attempt ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It was cancelled before it was let go.
    NeverLetGo,
    /// There was no plan to send.
    NoPlan(PlanFault),
    /// The launcher let no tool go.
    Refused {
        /// Why.
        fault: LaunchFault,
        /// Whether nothing of the cell is left.
        tree_gone: bool,
    },
    /// The tool was let go and ended.
    Over {
        /// All controls.
        controls: Vec<ControlReport>,
        /// When the tool was let go.
        started_on: UnixMicros,
        /// What was seen.
        report: EndReport,
        /// Why its output could not be read, if so.
        unread: Option<std::io::Error>,
    },
    /// The launcher says nothing about a cell that must have ended.
    Silent {
        /// What it said at the start: all controls, and when that was.
        started: Option<(Vec<ControlReport>, UnixMicros)>,
    },
}

/// An attempt that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pending: Pending,
    end: End,
    output: Option<CapturedOutput>,
    finished_on: UnixMicros,
}

impl Ended {
    /// Apart, to be carried on.
    pub(crate) fn into_parts(self) -> (Pending, End, Option<CapturedOutput>, UnixMicros) {
        (self.pending, self.end, self.output, self.finished_on)
    }
}

/// Has the cell built up to the moment before the tool is executed, or up to its clone where nothing speaks for it not to
/// hold; what is left then is waited for by [`ready`]. Nothing of the tool has run.
///
/// # Errors
/// What the caller or the operator can mend is a refusal, and nothing is kept of the call: `PERMISSION_DENIED` for a
/// mount that the caller may not have, `INVALID_REQUEST` for one that does not exist or has no place inside,
/// `CONTROL_UNAVAILABLE` for a required control that does not hold. Or the launcher is gone.
pub(crate) async fn arm(daemon: &Daemon, planned: Planned) -> Result<Armed, Problem> {
    let (asked, prospect, launch) = planned.into_parts();
    let hold = match launch {
        _ if prospect.place.live().is_cancelled() => Hold::Held(Held::Over(End::NeverLetGo)),
        Err(fault) => Hold::Held(Held::Over(End::NoPlan(fault))),
        Ok(launch) => {
            let mut cell = daemon.launcher.arm(launch.cell, launch.packet).map_err(|error| gone(&error))?;
            match next(&mut cell, prospect.place.live(), SILENCE).await? {
                Some(CellEvent::Begun { requested }) => Hold::Begun { cell, requested },
                event => {
                    let held = held(cell, event)?;
                    if let Held::Over(End::Refused { fault, .. }) = &held
                        && let Some(refusal) = refusal(fault, &launch.hosts)
                    {
                        return Err(Problem { call_id: Some(prospect.definition.call_id.to_string()), ..refusal });
                    }
                    Hold::Held(held)
                }
            }
        }
    };
    Ok(Armed { asked, prospect, hold })
}

/// What the event says of a cell that is to be armed.
fn held(cell: Cell, event: Option<CellEvent>) -> Result<Held, Problem> {
    match event {
        Some(CellEvent::Armed { controls, stdout, stderr }) => Ok(Held::Armed { cell, controls, stdout, stderr }),
        Some(CellEvent::Refused { fault, tree_gone }) => Ok(Held::Over(End::Refused { fault, tree_gone })),
        Some(CellEvent::Begun { .. } | CellEvent::Ended { .. } | CellEvent::Seen { .. }) => {
            Err(gone(&LauncherError::Protocol { rule: "a cell is armed before it ends" }))
        }
        None => Ok(Held::Over(End::Silent { started: None })),
    }
}

/// Faults that somebody can mend before the same request is sent again.
fn refusal(fault: &LaunchFault, hosts: &[String]) -> Option<Problem> {
    match fault {
        LaunchFault::Mount { index, errno, detail } => {
            let named = usize::try_from(*index).ok().and_then(|index| hosts.get(index));
            let host = named.map_or("?", String::as_str);
            let denied = matches!(Errno::from_raw_os_error(*errno), Errno::PERM | Errno::ACCESS);
            let code = if denied { ErrorCode::PermissionDenied } else { ErrorCode::InvalidRequest };
            let remedy = "mount a directory or a file that the caller may read, at a place where nothing else is; not the \
                          runner's own directories, nor /proc, /sys or /dev";
            Some(Problem::new(code, format!("the mount of {host:?} is not possible: {detail}"), remedy))
        }
        LaunchFault::Control { id, detail, remedy } => {
            let detail = format!("the required control {id} does not hold: {detail}");
            Some(Problem::new(ErrorCode::ControlUnavailable, detail, remedy.clone()))
        }
        LaunchFault::BadPlan { .. } | LaunchFault::Stage { .. } | LaunchFault::Killed { .. } => None,
    }
}

/// Waits for what is left of the setting up of a cell whose intent was signed meanwhile. One that does not hold after all
/// ends the attempt: nothing of the tool has run, and the outcome says so.
///
/// # Errors
/// The launcher is gone: the attempt stays without an outcome until the next start.
pub(crate) async fn ready(intended: Intended) -> Result<Ready, Problem> {
    let (pending, hold) = intended.into_parts();
    let held = match hold {
        Hold::Begun { mut cell, .. } => {
            let event = next(&mut cell, pending.place.live(), SILENCE).await?;
            held(cell, event)?
        }
        Hold::Held(held) => held,
    };
    Ok(Ready { pending, held })
}

/// Lets the tool go and sees the attempt to its end.
///
/// # Errors
/// The launcher is gone: the attempt stays without an outcome until the next start.
pub(crate) async fn run(daemon: &Daemon, Ready { pending, held }: Ready) -> Result<Ended, Problem> {
    let live = pending.place.live();
    let (end, output) = match held {
        Held::Over(end) => (end, None),
        Held::Armed { .. } if live.is_cancelled() => (End::NeverLetGo, None),
        Held::Armed { cell, controls, stdout, stderr } => {
            let is_limited = !pending.definition.ablated.has(ControlId::WallClock);
            let wall = if is_limited { Duration::from_millis(pending.definition.limits.wall_ms) } else { NO_LIMIT };
            let started = (controls, daemon.clock.wall());
            supervise((cell, live), started, (stdout, stderr), wall).await?
        }
    };
    live.output().close();
    Ok(Ended { pending, end, output, finished_on: daemon.clock.wall() })
}

/// From *go* to the end of the cell.
async fn supervise(
    (mut cell, live): (Cell, &LiveCall),
    (controls, started_on): (Vec<ControlReport>, UnixMicros),
    (stdout, stderr): (OwnedFd, OwnedFd),
    wall: Duration,
) -> Result<(End, Option<CapturedOutput>), Problem> {
    // Read before anything can be written.
    let (reading, unread) = match live.output().start(stdout, stderr) {
        Ok(reading) => {
            cell.go().map_err(|error| gone(&error))?;
            (Some(reading), None)
        }
        Err(error) => {
            kill(&cell, KillReason::Cancelled)?;
            (None, Some(error))
        }
    };
    match next(&mut cell, live, wall.saturating_add(SILENCE)).await? {
        Some(CellEvent::Ended { report }) => {
            let output = finish(reading).await;
            Ok((End::Over { controls, started_on, report, unread }, output))
        }
        // It was killed before the word reached it.
        Some(CellEvent::Refused { fault, tree_gone }) => Ok((End::Refused { fault, tree_gone }, None)),
        Some(CellEvent::Begun { .. } | CellEvent::Armed { .. } | CellEvent::Seen { .. }) => {
            Err(gone(&LauncherError::Protocol { rule: "a cell is armed once" }))
        }
        None => {
            let output = finish(reading).await;
            Ok((End::Silent { started: Some((controls, started_on)) }, output))
        }
    }
}

async fn finish(reading: Option<Reading>) -> Option<CapturedOutput> {
    match reading {
        Some(reading) => Some(reading.finish().await),
        None => None,
    }
}

/// The next event of the cell; none if it does not come in time. Meanwhile kills are passed on, each at most once.
async fn next(cell: &mut Cell, live: &LiveCall, patience: Duration) -> Result<Option<CellEvent>, Problem> {
    let deadline = tokio::time::sleep(patience);
    tokio::pin!(deadline);
    let (mut is_cancelled, mut is_over_limit) = (false, false);
    loop {
        tokio::select! {
            event = cell.next() => match event {
                Some(event) => return Ok(Some(event)),
                None => return Err(gone(&LauncherError::Gone)),
            },
            () = live.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                kill(cell, KillReason::Cancelled)?;
            }
            () = live.output().exceeded(), if !is_over_limit => {
                is_over_limit = true;
                kill(cell, KillReason::OutputLimit)?;
            }
            () = &mut deadline => return Ok(None),
        }
    }
}

fn kill(cell: &Cell, reason: KillReason) -> Result<(), Problem> {
    cell.kill(reason).map_err(|error| gone(&error))
}

fn gone(error: &LauncherError) -> Problem {
    let mut problem = fault("the launcher is gone, so that nobody saw the end of this call", error);
    "start again: the call is then settled as lost".clone_into(&mut problem.remedy);
    problem
}
