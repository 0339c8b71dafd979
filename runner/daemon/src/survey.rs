//! `GET /v1/doctor`: what of all this can be enforced on this machine, seen in cells that the launcher builds for it.
//!
//! Guarantees: at most one survey at a time; whoever asks meanwhile, or within [`FRESH`] after, gets the same report; each
//! of its cells has a bound in time and is gone when nobody waits for it. What runs in them is the launcher's own choice,
//! no part of a call: nothing of it is in the ledger. Does not: read the host (the launcher does, as this process sees
//! nothing of it), decide what the findings mean (see `toolcell-doctor`).

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use toolcell_doctor::remedies::Cause;
use toolcell_doctor::{Built, Ended, Looked, assess, warnings};
use toolcell_types::doctor::{DoctorReport, HostFacts, ServeCheck, SurveyAct};
use toolcell_types::plan::{KillReason, ToLauncher};
use toolcell_types::{ControlId, ControlReport, ControlState, ErrorCode, Problem};

use crate::daemon::Daemon;
use crate::launcher::{Cell, CellEvent, Launcher, LauncherError, Packet};
use crate::output::{CapturedOutput, Output};

/// For so long a report is not made anew: a machine's settings change more slowly, and each survey costs four cells.
const FRESH: Duration = Duration::from_secs(2);
/// From the question to an armed cell, and from there to its end: beyond what the launcher's own clocks allow.
const PATIENCE: Duration = Duration::from_secs(90);
/// Most bytes that are passed on of what a survey's program complains about.
const COMPLAINT_BYTES: usize = 512;

/// The last report, and the place of who makes the next.
#[derive(Debug, Default)]
pub(crate) struct Surveys(Mutex<Option<(Instant, Arc<DoctorReport>)>>);

/// The report, made now or a moment ago.
///
/// # Errors
/// The launcher is gone.
pub(crate) async fn report(daemon: &Daemon) -> Result<Arc<DoctorReport>, Problem> {
    let mut last = daemon.surveys.0.lock().await;
    if let Some((at, report)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
        tracing::debug!(age = ?at.elapsed(), "a report of a moment ago is told again");
        return Ok(Arc::clone(report));
    }
    let report = Arc::new(survey(daemon).await?);
    *last = Some((Instant::now(), Arc::clone(&report)));
    Ok(report)
}

async fn survey(daemon: &Daemon) -> Result<DoctorReport, Problem> {
    let host = look(&daemon.launcher).await?;
    let known: Vec<(ControlId, Cause)> = daemon
        .unavailable
        .iter()
        .map(|one| (one.id, Cause { why: one.detail.clone(), remedy: one.remedy.clone() }))
        .collect();
    let cells = cells(&daemon.launcher).await;
    let looked = Looked {
        host: &host,
        is_root: daemon.is_root,
        accepted: &daemon.accept_unavailable,
        known: &known,
        cells: &cells,
    };
    let report = DoctorReport {
        version: daemon.about.version.clone(),
        architecture: host.machine.clone(),
        kernel: host.release.clone(),
        is_root: daemon.is_root,
        container: host.container.clone(),
        ready: false,
        // It does.
        serve: ServeCheck { starts: true, ..ServeCheck::default() },
        accept_unavailable: daemon.accept_unavailable.clone(),
        go_without: Vec::new(),
        controls: assess(&looked),
        warnings: warnings(&host),
    };
    Ok(report.judged())
}

async fn look(launcher: &Arc<Launcher>) -> Result<HostFacts, Problem> {
    let id = launcher.next_cell();
    let asked = Packet::new(&ToLauncher::Look { cell: id }, Vec::new()).and_then(|packet| launcher.arm(id, packet));
    let mut answer = asked.map_err(|error| unheard(&error))?;
    match tokio::time::timeout(PATIENCE, answer.next()).await {
        Ok(Some(CellEvent::Seen { host })) => Ok(*host),
        Ok(Some(_) | None) | Err(_) => Err(unheard(&LauncherError::Gone)),
    }
}

fn unheard(error: &LauncherError) -> Problem {
    crate::daemon::fault("the launcher did not say what the host is like", error)
}

/// The four cells, one after the other. One whose clock nothing keeps is not let run into it.
async fn cells(launcher: &Arc<Launcher>) -> Vec<(SurveyAct, Built)> {
    let mut cells = Vec::with_capacity(SurveyAct::ALL.len());
    for act in SurveyAct::ALL {
        let has_no_clock = act == SurveyAct::Spin && lacks(&cells, ControlId::CpuClock);
        let built = match cells.first() {
            _ if has_no_clock => Built::Unseen("nothing counts the tree's processor time".to_owned()),
            Some((SurveyAct::Probe, Built::No(_))) => Built::Unseen("no cell can be built".to_owned()),
            _ => one(launcher, act).await.unwrap_or_else(Built::Unseen),
        };
        cells.push((act, built));
    }
    cells
}

fn lacks(cells: &[(SurveyAct, Built)], id: ControlId) -> bool {
    let is_missing = |report: &ControlReport| report.id == id && report.state != ControlState::Enforced;
    cells.iter().any(|(_, built)| matches!(built, Built::Yes(ended) if ended.controls.iter().any(is_missing)))
}

/// One cell from its building to its end. The error is why nothing can be said of it.
async fn one(launcher: &Arc<Launcher>, act: SurveyAct) -> Result<Built, String> {
    let id = launcher.next_cell();
    let asked = Packet::new(&ToLauncher::Survey { cell: id, act }, Vec::new());
    let mut cell = asked.and_then(|packet| launcher.arm(id, packet)).map_err(|error| error.to_string())?;
    let too_long = |_elapsed| format!("nothing was heard of the cell for {} s", PATIENCE.as_secs());
    match tokio::time::timeout(PATIENCE, cell.next()).await.map_err(too_long)? {
        Some(CellEvent::Armed { controls, stdout, stderr }) => {
            tokio::time::timeout(PATIENCE, run(cell, act, controls, (stdout, stderr))).await.map_err(too_long)?
        }
        Some(CellEvent::Refused { fault, .. }) => Ok(Built::No(fault)),
        Some(CellEvent::Begun { .. } | CellEvent::Ended { .. } | CellEvent::Seen { .. }) => {
            Err("the launcher broke the protocol".to_owned())
        }
        None => Err("the launcher is gone".to_owned()),
    }
}

/// Lets the program go and reads what it says, within the caps that hold for every call.
async fn run(
    mut cell: Cell,
    act: SurveyAct,
    controls: Vec<ControlReport>,
    (stdout, stderr): (OwnedFd, OwnedFd),
) -> Result<Built, String> {
    let output = Output::new(&act.limits());
    let reading = output.start(stdout, stderr).map_err(|error| format!("its output cannot be read: {error}"))?;
    cell.go().map_err(|error| error.to_string())?;
    let mut is_over_limit = false;
    let event = loop {
        tokio::select! {
            event = cell.next() => break event,
            () = output.exceeded(), if !is_over_limit => {
                is_over_limit = true;
                cell.kill(KillReason::OutputLimit).map_err(|error| error.to_string())?;
            }
        }
    };
    let CapturedOutput { stdout, stderr, .. } = reading.finish().await;
    match event {
        Some(CellEvent::Ended { report }) => {
            let complaint = stderr.kept.get(..COMPLAINT_BYTES).unwrap_or(&stderr.kept);
            let stderr = String::from_utf8_lossy(complaint).into_owned();
            let written = stdout.total_bytes;
            Ok(Built::Yes(Box::new(Ended { controls, report, written, stdout: stdout.kept, stderr })))
        }
        Some(CellEvent::Refused { fault, .. }) => Ok(Built::No(fault)),
        Some(CellEvent::Begun { .. } | CellEvent::Armed { .. } | CellEvent::Seen { .. }) => {
            Err("the launcher broke the protocol".to_owned())
        }
        None => Err("the launcher is gone".to_owned()),
    }
}

/// Whether this asker may have it: it tells what the host is like, and costs cells.
///
/// # Errors
/// `ROLE_DENIED`.
pub(crate) fn may_ask(is_operator: bool) -> Result<(), Problem> {
    if is_operator {
        return Ok(());
    }
    let detail = "the report tells what this machine is like; it is for operators";
    Err(Problem::new(ErrorCode::RoleDenied, detail, "ask whoever started the daemon for `toolcell doctor`"))
}
