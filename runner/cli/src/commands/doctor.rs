//! `toolcell doctor`: what of a cell can be enforced on this machine, told by a `serve` that is really started.
//!
//! The start is tried with the very options, in a place of its own beside whatever runs; what it cannot try there (whether
//! the named state and socket are free and fit) is looked at without changing them. A start that fails for want of groups
//! is tried once more without, so that the rest is seen as well.

use anyhow::Context as _;
use toolcell_client::Client;
use toolcell_doctor::{Built, Looked, assess, host_facts, warnings};
use toolcell_lab::ablation::Report;
use toolcell_types::ControlId;
use toolcell_types::doctor::{CheckState, DoctorReport, HostFacts, ServeCheck, SurveyAct};

use super::ablate;
use super::trial::{self, Order, Refusal, Tried};
use crate::args::{DoctorArgs, ServeArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::missing::GROUPS;
use crate::render;
use crate::serve::{Place, ServeError, Serving};

/// How long a trial outlives a killed `doctor`.
const IDLE_EXIT_S: u32 = 30;

/// Prints the report. Exit 0 only if `serve` starts with these options, or serves with this state already, and calls run.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<Exit, Failure> {
    let report = examine(&args.serve)?;
    // Where no call runs nothing can be tried.
    let can_try = report.ready || report.serve.served_by.is_some();
    let probes = if args.probe && can_try { Some(ablate::baseline(&args.serve)?) } else { None };
    if args.json {
        render::value(&Told { doctor: &report, probes: probes.as_ref() })?;
    } else {
        render::out(render::doctor(&report).as_bytes())?;
        if let Some(probes) = &probes {
            render::out(format!("\n{}", render::ablate(probes)).as_bytes())?;
        }
    }
    let is_tight = probes.as_ref().is_none_or(|probes| probes.summary.good);
    Ok(if report.ready && is_tight { Exit::Ok } else { Exit::Failed })
}

/// What is printed as JSON: the report, and with `--probe` what the probes came to beside it.
#[derive(serde::Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    doctor: &'a DoctorReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    probes: Option<&'a Report>,
}

fn examine(args: &ServeArgs) -> Result<DoctorReport, Failure> {
    let host = host_facts();
    let place = match Place::of(args) {
        Ok(place) => place,
        Err(error) => return Ok(nothing_seen(&host, Vec::new(), &Refusal::of(&error))),
    };
    let accepted = place.accepted().to_vec();
    let report = match try_start(args, &place, &accepted)? {
        Tried::Done(report) => report,
        Tried::Refused(refusal) => match without_groups(args, &place, &refusal)? {
            Some(report) => blamed(report, &accepted, refusal),
            None => nothing_seen(&host, accepted, &refusal),
        },
    };
    let report = match place.serving() {
        Ok(Some(serving)) if report.serve.starts => served(report, &serving),
        Ok(_) => occupied(report, place.look().err()),
        Err(error) => occupied(report, Some(error)),
    };
    Ok(report.judged())
}

fn try_start(args: &ServeArgs, place: &Place, accepted: &[ControlId]) -> Result<Tried<DoctorReport>, Failure> {
    let order = Order { args, place, accepted, is_ablating: false, canary: None, idle_exit_s: IDLE_EXIT_S };
    let ask = |client: Client| async move { client.doctor().await.context("serve started, and then") };
    trial::run(&order, ask)
}

/// A second start in which everything that needs a group is accepted as missing; none if that is no help.
fn without_groups(args: &ServeArgs, place: &Place, first: &Refusal) -> Result<Option<DoctorReport>, Failure> {
    let mut accepted = place.accepted().to_vec();
    accepted.extend(GROUPS.into_iter().filter(|id| !place.accepted().contains(id)));
    if accepted.len() == place.accepted().len() || !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    tracing::debug!(first = first.reason, "the start is tried again without groups");
    Ok(match try_start(args, place, &accepted)? {
        Tried::Done(report) => Some(report),
        Tried::Refused(_) => None,
    })
}

/// What a start that accepts more has told, judged by what was accepted.
fn blamed(mut report: DoctorReport, accepted: &[ControlId], refusal: Refusal) -> DoctorReport {
    for control in &mut report.controls {
        control.required = control.id.is_required_by_default() && !accepted.contains(&control.id);
        if GROUPS.contains(&control.id) && control.state != CheckState::Enforced {
            control.reason = Some(refusal.reason.clone());
            control.remedy.clone_from(&refusal.remedy);
        }
    }
    report.accept_unavailable = accepted.to_vec();
    report.serve = refusal.into_check();
    report
}

/// A report of a machine on which nothing could be started.
fn nothing_seen(host: &HostFacts, accepted: Vec<ControlId>, refusal: &Refusal) -> DoctorReport {
    let is_root = rustix::process::geteuid().is_root();
    let cells = [(SurveyAct::Probe, Built::Unseen(format!("serve did not start: {}", refusal.reason)))];
    let looked = Looked { host, is_root, accepted: &accepted, known: &[], cells: &cells };
    let mut controls = assess(&looked);
    for control in &mut controls {
        control.remedy = refusal.remedy.clone().or(control.remedy.take());
        if refusal.is_about.contains(&control.id) {
            control.state = CheckState::Unavailable;
        }
    }
    DoctorReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        architecture: host.machine.clone(),
        kernel: host.release.clone(),
        is_root,
        container: host.container.clone(),
        ready: false,
        serve: refusal.clone().into_check(),
        controls,
        accept_unavailable: accepted,
        go_without: Vec::new(),
        warnings: warnings(host),
    }
}

/// One that has the place already need not make way: whoever asks wants to know whether calls run.
fn served(mut report: DoctorReport, serving: &Serving) -> DoctorReport {
    let Serving { pid, socket, is_ready } = serving;
    let asked = format!("curl --unix-socket {} http://toolcell/v1/doctor", socket.display());
    let (reason, remedy) = if *is_ready {
        (format!("process {pid} serves {} already", socket.display()), format!("nothing; its own report: {asked}"))
    } else {
        let reason = format!("process {pid} serves {} already, and calls do not run there", socket.display());
        (reason, format!("see what it lacks: {asked}"))
    };
    report.serve =
        ServeCheck { starts: false, served_by: is_ready.then_some(*pid), reason: Some(reason), remedy: Some(remedy) };
    report
}

/// The named place may be in use, or no place for an instance; then `serve` would not start there.
fn occupied(mut report: DoctorReport, error: Option<ServeError>) -> DoctorReport {
    if let (true, Some(error)) = (report.serve.starts, error) {
        report.serve = Refusal::of(&error).into_check();
    }
    report
}

impl Refusal {
    fn into_check(self) -> ServeCheck {
        ServeCheck { starts: false, served_by: None, reason: Some(self.reason), remedy: self.remedy }
    }
}
