//! Supervising one cell: ask for it, read its output, have it killed when asked to or when it prints too much, and see
//! its end.
//!
//! Guarantees: whatever happens after the intent ends in a value that an outcome can be made of, except that the
//! launcher dies (then nobody saw the end, and the next start settles the call). Does not: measure or decide the cause
//! of an end, which is the launcher's; the clocks here only notice a launcher that has fallen silent.

use std::time::Duration;

use toolcell_receipts::UnixMicros;
use toolcell_types::plan::{EndReport, KillReason, LaunchFault};
use toolcell_types::{ControlReport, Problem};

use crate::calls::LiveCall;
use crate::daemon::{Daemon, fault};
use crate::launcher::{Cell, CellEvent, LauncherError};
use crate::output::{CapturedOutput, Reading};
use crate::plan::{Pending, PlanFault, Planned};

/// How long the launcher may take beyond what it was told: to build a cell while it builds others, or to empty one.
const SILENCE: Duration = Duration::from_secs(120);

/// How the attempt ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It was cancelled before a cell was asked for.
    NeverAsked,
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

/// Runs the attempt to its end.
///
/// # Errors
/// The launcher is gone: the attempt stays without an outcome until the next start.
pub(crate) async fn run(daemon: &Daemon, planned: Planned) -> Result<Ended, Problem> {
    let (pending, launch) = planned.into_parts();
    let live = pending.place.live();
    let (end, output) = match launch {
        _ if live.is_cancelled() => (End::NeverAsked, None),
        Err(fault) => (End::NoPlan(fault), None),
        Ok(launch) => {
            let cell = daemon.launcher.launch(launch.cell, launch.packet).map_err(|error| gone(&error))?;
            let wall = Duration::from_millis(pending.definition.limits.wall_ms);
            supervise(daemon, (cell, live), wall).await?
        }
    };
    live.output().close();
    Ok(Ended { pending, end, output, finished_on: daemon.clock.wall() })
}

/// From the launch to the end of the cell.
async fn supervise(
    daemon: &Daemon,
    (mut cell, live): (Cell, &LiveCall),
    wall: Duration,
) -> Result<(End, Option<CapturedOutput>), Problem> {
    let (controls, stdout, stderr) = match next(&mut cell, live, SILENCE).await? {
        Some(CellEvent::Started { controls, stdout, stderr }) => (controls, stdout, stderr),
        Some(CellEvent::Refused { fault, tree_gone }) => return Ok((End::Refused { fault, tree_gone }, None)),
        Some(CellEvent::Ended { .. }) => return Err(gone(&LauncherError::Protocol { rule: "a start before an end" })),
        None => return Ok((End::Silent { started: None }, None)),
    };
    let started_on = daemon.clock.wall();
    let (reading, unread) = match live.output().start(stdout, stderr) {
        Ok(reading) => (Some(reading), None),
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
        Some(CellEvent::Started { .. } | CellEvent::Refused { .. }) => {
            Err(gone(&LauncherError::Protocol { rule: "an end after a start" }))
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
