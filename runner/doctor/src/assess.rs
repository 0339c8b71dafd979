//! From what a survey saw to what is said of each control.
//!
//! A control counts as enforced only if the launcher read it back as such and nothing that was tried says otherwise. An
//! instrument that failed where it must work proves nothing: then the state is unknown, not enforced.

use toolcell_types::doctor::{CheckState, ControlCheck, HostFacts, Proof, Side, SurveyAct, Trial};
use toolcell_types::plan::{EndCause, EndReport, LaunchFault};
use toolcell_types::{ControlId, ControlReport, ControlState, Fact, Facts};

use crate::remedies::{self, Cause};

/// A survey's cell that came to its end.
#[derive(Debug)]
pub struct Ended {
    /// All 29, as the launcher read them back.
    pub controls: Vec<ControlReport>,
    /// How it ended.
    pub report: EndReport,
    /// What of its standard output was kept.
    pub stdout: Vec<u8>,
    /// How much it wrote, in bytes.
    pub written: u64,
    /// What it said on standard error, a little of it.
    pub stderr: String,
}

/// What became of one of a survey's cells.
#[derive(Debug)]
pub enum Built {
    /// There is none: a step failed.
    No(LaunchFault),
    /// Nothing was heard of it, or it was not asked for; and why.
    Unseen(String),
    /// It was there.
    Yes(Box<Ended>),
}

/// All that a survey saw.
#[derive(Debug)]
pub struct Looked<'a> {
    /// The host.
    pub host: &'a HostFacts,
    /// Whether the instance is root's.
    pub is_root: bool,
    /// What the operator accepted as missing.
    pub accepted: &'a [ControlId],
    /// What is known to be missing from the start on, and why.
    pub known: &'a [(ControlId, Cause)],
    /// The cells, in the order of [`SurveyAct::ALL`]; those that were not asked for are left out.
    pub cells: &'a [(SurveyAct, Built)],
}

/// What is said of each control, in the order of every report.
#[must_use]
pub fn assess(looked: &Looked<'_>) -> Vec<ControlCheck> {
    let probed = looked.cell(SurveyAct::Probe);
    let trials = probed.map(trials_of);
    ControlId::ALL.into_iter().map(|id| looked.check(id, trials.as_ref())).collect()
}

/// What the program found; or why it found nothing.
fn trials_of(ended: &Ended) -> Result<Vec<Trial>, String> {
    match &ended.report.cause {
        EndCause::Exited(0) => serde_json::from_slice(&ended.stdout)
            .map_err(|error| format!("what the survey's program said makes no sense: {error}")),
        EndCause::StartFailed { stage, errno } => Err(not_started(stage, *errno)),
        other @ (EndCause::Exited(_)
        | EndCause::Signaled(_)
        | EndCause::WallLimit
        | EndCause::CpuLimit
        | EndCause::MemoryLimit
        | EndCause::PidsLimit
        | EndCause::OutputLimit
        | EndCause::Cancelled
        | EndCause::Internal { .. }) => {
            Err(format!("the survey's program ended badly: {other:?} {}", ended.stderr.trim()))
        }
    }
}

/// Then nothing was tried, and nothing proven.
fn not_started(stage: &str, errno: i32) -> String {
    let errno = toolcell_types::names::errno(errno);
    format!("the survey's program, which is toolcell's own file, could not be started: {stage}: {errno}")
}

impl Looked<'_> {
    fn built(&self, act: SurveyAct) -> Option<&Built> {
        self.cells.iter().find(|(known, _)| *known == act).map(|(_, built)| built)
    }

    fn cell(&self, act: SurveyAct) -> Option<&Ended> {
        match self.built(act)? {
            Built::Yes(ended) => Some(ended),
            Built::No(_) | Built::Unseen(_) => None,
        }
    }

    fn check(&self, id: ControlId, trials: Option<&Result<Vec<Trial>, String>>) -> ControlCheck {
        let required = id.is_required_by_default() && !self.accepted.contains(&id);
        let report = self.cell(SurveyAct::Probe).and_then(|ended| ended.controls.iter().find(|known| known.id == id));
        let Some(report) = report else { return self.without_cell(id, required) };
        let (allowed, forbidden) = if report.state == ControlState::Enforced {
            self.sides(id, report, trials)
        } else {
            let missing = || Side::not_tried("", "the control is missing");
            (missing(), missing())
        };
        let (state, cause) = match (self.judge(report, &allowed, &forbidden), trials) {
            // Where no program can be run to its end, a call cannot either, whatever reads back well.
            ((CheckState::Enforced, _), Some(Err(why))) => {
                let remedy = "see that a cell can execute toolcell's own file and what it is linked with: both must be \
                              readable and executable for everybody (chmod 755)";
                (CheckState::Unknown, Some(Cause { why: why.clone(), remedy: remedy.to_owned() }))
            }
            (judged, _) => judged,
        };
        let is_two_sided = allowed.holds == Some(true) && forbidden.holds == Some(true);
        ControlCheck {
            id,
            state,
            required,
            proof: if is_two_sided { Proof::TwoSided } else { Proof::ReadBack },
            verification: Some(report.verification),
            requested: report.requested.to_json(),
            observed: report.observed.to_json(),
            allowed,
            forbidden,
            reason: cause.as_ref().map(|cause| cause.why.clone()),
            remedy: cause.map(|cause| cause.remedy),
        }
    }

    fn judge(&self, report: &ControlReport, allowed: &Side, forbidden: &Side) -> (CheckState, Option<Cause>) {
        let said = |why: String, remedy: &str| Some(Cause { why, remedy: remedy.to_owned() });
        if report.state != ControlState::Enforced {
            return (CheckState::Unavailable, Some(self.why_missing(report)));
        }
        if forbidden.holds == Some(false) {
            let why = format!("it reads back as in force, but: {}: {}", forbidden.act, forbidden.got);
            return (
                CheckState::Unavailable,
                said(why, "do not rely on it, and report this with the kernel's version"),
            );
        }
        if allowed.holds == Some(false) {
            let why = format!("what must work does not, so that nothing is proven: {}: {}", allowed.act, allowed.got);
            return (CheckState::Unknown, said(why, "see what of the machine keeps it from working, then look again"));
        }
        (CheckState::Enforced, None)
    }

    fn known(&self, id: ControlId) -> Option<Cause> {
        self.known.iter().find(|(known, _)| *known == id).map(|(_, cause)| cause.clone())
    }

    fn why_missing(&self, report: &ControlReport) -> Cause {
        let id = report.id;
        if let Some(cause) = self.known(id) {
            return cause;
        }
        if matches!(id, ControlId::LandlockNet | ControlId::LandlockScope) && is_not_in_kernel(&report.observed) {
            return remedies::old_landlock(id, self.host);
        }
        let (wanted, seen) = (report.requested.to_json(), report.observed.to_json());
        Cause { why: format!("asked for {wanted}, seen {seen}"), remedy: remedies::does_not_hold(id) }
    }

    /// No cell was read back: the control at which its building failed is missing, of the others nothing is known.
    fn without_cell(&self, id: ControlId, required: bool) -> ControlCheck {
        let (state, cause) = match self.built(SurveyAct::Probe) {
            Some(Built::No(fault)) => self.of_fault(id, fault),
            Some(Built::Unseen(why)) => (CheckState::Unknown, unseen(why)),
            Some(Built::Yes(_)) => (CheckState::Unknown, unseen("the launcher did not report it")),
            None => (CheckState::Unknown, unseen("no cell was built")),
        };
        let (state, cause) = match self.known(id) {
            Some(cause) => (CheckState::Unavailable, cause),
            None => (state, cause),
        };
        let side = || Side::not_tried("", "there was no cell to try it in");
        ControlCheck {
            id,
            state,
            required,
            proof: Proof::None,
            verification: None,
            requested: serde_json::json!({}),
            observed: serde_json::json!({}),
            allowed: side(),
            forbidden: side(),
            reason: Some(cause.why),
            remedy: Some(cause.remedy),
        }
    }

    fn of_fault(&self, id: ControlId, fault: &LaunchFault) -> (CheckState, Cause) {
        let (ids, cause) = match fault {
            LaunchFault::Stage { stage, errno, detail } => {
                remedies::of_step(stage, *errno, detail, self.host, self.is_root)
            }
            LaunchFault::Control { id, detail, remedy } => {
                (vec![*id], Cause { why: detail.clone(), remedy: remedy.clone() })
            }
            LaunchFault::BadPlan { detail } | LaunchFault::Mount { detail, .. } => (Vec::new(), unseen(detail)),
            LaunchFault::Killed { reason } => (Vec::new(), unseen(&format!("it was killed: {reason:?}"))),
        };
        let is_about = ids.contains(&id);
        (if is_about { CheckState::Unavailable } else { CheckState::Unknown }, cause)
    }

    /// Both sides of a control that reads back as in force.
    fn sides(
        &self,
        id: ControlId,
        report: &ControlReport,
        trials: Option<&Result<Vec<Trial>, String>>,
    ) -> (Side, Side) {
        match id {
            ControlId::LandlockFs => landlock(&report.observed, &["make_file"], "make a file where no rule allows it"),
            ControlId::LandlockNet => landlock(&report.observed, &["bind_tcp"], "bind a TCP port"),
            ControlId::LandlockScope => landlock(
                &report.observed,
                &["abstract_socket", "signal"],
                "connect to an abstract socket, signal a process outside of the domain",
            ),
            ControlId::UsernsNested => nested(&report.observed),
            ControlId::WallClock => self.clock(SurveyAct::Sleep, &EndCause::WallLimit, "sleep for longer"),
            ControlId::CpuClock => self.clock(SurveyAct::Spin, &EndCause::CpuLimit, "compute for longer"),
            ControlId::CgroupCpu => self.share(),
            ControlId::OutputCap => self.flood(),
            ControlId::NamespaceUser
            | ControlId::NamespaceMount
            | ControlId::NamespacePid
            | ControlId::NamespaceNet
            | ControlId::NamespaceIpc
            | ControlId::NamespaceUts
            | ControlId::NamespaceCgroup
            | ControlId::RootReadonly
            | ControlId::MountsNosuidNodev
            | ControlId::DevMinimal
            | ControlId::ProcMasked
            | ControlId::Capabilities
            | ControlId::NoNewPrivs
            | ControlId::Seccomp
            | ControlId::IdentityUnprivileged
            | ControlId::FdsClosed
            | ControlId::EnvironmentAllowlist
            | ControlId::CgroupMemory
            | ControlId::CgroupPids
            | ControlId::Rlimits
            | ControlId::TmpQuota => inside(id, trials),
        }
    }

    fn ended_by_itself(&self) -> Side {
        const ACT: &str = "run within the limit to its own end";
        self.seen_of(SurveyAct::Probe, ACT, |ended| {
            let is_well = ended.report.cause == EndCause::Exited(0);
            let got = if is_well { "exit 0".to_owned() } else { format!("{:?}", ended.report.cause) };
            Side::tried(ACT, got, is_well)
        })
    }

    fn seen_of(&self, act: SurveyAct, doing: &str, side: impl FnOnce(&Ended) -> Side) -> Side {
        match self.built(act) {
            Some(Built::Yes(ended)) => {
                if let EndCause::StartFailed { stage, errno } = &ended.report.cause {
                    return Side::not_tried(doing, not_started(stage, *errno));
                }
                side(ended)
            }
            Some(Built::No(fault)) => Side::not_tried(doing, format!("its cell could not be built: {fault:?}")),
            Some(Built::Unseen(why)) => Side::not_tried(doing, why.clone()),
            None => Side::not_tried(doing, "its cell was not built"),
        }
    }

    fn clock(&self, act: SurveyAct, cause: &EndCause, doing: &str) -> (Side, Side) {
        let limits = act.limits();
        let most = if act == SurveyAct::Sleep { limits.wall_ms } else { limits.cpu_ms };
        let doing = format!("{doing} than {most} ms");
        let forbidden = self.seen_of(act, &doing, |ended| {
            let is_killed = ended.report.cause == *cause && ended.report.tree_gone;
            let got =
                if is_killed { "killed, the tree is gone".to_owned() } else { format!("{:?}", ended.report.cause) };
            Side::tried(doing.clone(), got, is_killed)
        });
        (self.ended_by_itself(), forbidden)
    }

    /// The kernel's own count of how long it held the group back.
    fn share(&self) -> (Side, Side) {
        let act = SurveyAct::Spin;
        let doing = format!("use more than {} thousandths of a processor", act.limits().cpu_millis);
        let used = |ended: &Ended| {
            let usage = &ended.report.usage;
            usage.cpu_user_us.unwrap_or(0).saturating_add(usage.cpu_system_us.unwrap_or(0))
        };
        let allowed = self.seen_of(act, "compute at all", |ended| {
            Side::tried("compute at all", format!("{} µs", used(ended)), used(ended) > 0)
        });
        let forbidden = self.seen_of(act, &doing, |ended| match ended.report.usage.throttled_us {
            // It did not get what it may have, so that there was nothing to hold back.
            Some(0) if is_within(used(ended), ended.report.usage.wall_us, act.limits().cpu_millis) => {
                Side::not_tried(doing.clone(), "the machine was too busy for it to get that much")
            }
            Some(held) => Side::tried(doing.clone(), format!("held back for {held} µs"), held > 0),
            None => Side::not_tried(doing.clone(), "the kernel does not count it"),
        });
        (allowed, forbidden)
    }

    fn flood(&self) -> (Side, Side) {
        let limits = SurveyAct::Flood.limits();
        let doing = format!("print more than {} KiB", limits.output_limit_bytes / 1024);
        let forbidden = self.seen_of(SurveyAct::Flood, &doing, |ended| {
            let kept = u64::try_from(ended.stdout.len()).unwrap_or(u64::MAX);
            let holds = ended.report.cause == EndCause::OutputLimit && kept <= limits.output_keep_bytes;
            let got = if holds { format!("killed, {kept} bytes kept") } else { format!("{:?}", ended.report.cause) };
            Side::tried(doing.clone(), got, holds)
        });
        const WHOLE: &str = "have all output within the limit kept";
        let allowed = self.seen_of(SurveyAct::Probe, WHOLE, |ended| {
            let kept = u64::try_from(ended.stdout.len()).unwrap_or(u64::MAX);
            Side::tried(WHOLE, format!("{kept} of {} bytes", ended.written), kept == ended.written && kept > 0)
        });
        (allowed, forbidden)
    }
}

/// Whether this is no more than that share of one processor over that time, all of it known.
fn is_within(used_us: u64, wall_us: Option<u64>, millis: u64) -> bool {
    wall_us.is_some_and(|wall_us| used_us.saturating_mul(1000) <= wall_us.saturating_mul(millis))
}

fn unseen(why: &str) -> Cause {
    Cause { why: why.to_owned(), remedy: "see what is missing elsewhere in this report, then look again".to_owned() }
}

fn inside(id: ControlId, trials: Option<&Result<Vec<Trial>, String>>) -> (Side, Side) {
    let why = match trials {
        Some(Ok(trials)) => match trials.iter().find(|trial| trial.id == id) {
            Some(trial) => return (trial.allowed.clone(), trial.forbidden.clone()),
            None => "the survey's program has no trial for it".to_owned(),
        },
        Some(Err(why)) => why.clone(),
        None => "there was no cell to try it in".to_owned(),
    };
    (Side::not_tried("", why.clone()), Side::not_tried("", why))
}

fn text<'f>(facts: &'f Facts, name: &str) -> Option<&'f str> {
    facts.0.iter().find_map(|(known, fact)| match fact {
        Fact::Text(text) if known == name => Some(text.as_str()),
        Fact::Text(_) | Fact::Int(_) | Fact::Flag(_) | Fact::List(_) | Fact::Ints(_) => None,
    })
}

fn is_not_in_kernel(facts: &Facts) -> bool {
    facts.0.iter().any(|(_, fact)| matches!(fact, Fact::Text(text) if text == "not in this kernel"))
}

/// The tool's own process tried it before and after, and a cell in which it did not work before is never armed.
fn landlock(observed: &Facts, names: &[&str], act: &str) -> (Side, Side) {
    let got: Vec<&str> = names.iter().filter_map(|name| text(observed, name)).collect();
    let holds = got.len() == names.len() && got.iter().all(|got| matches!(*got, "EACCES" | "EPERM"));
    (
        Side::tried(format!("{act}, before it is in force"), "it worked", true),
        Side::tried(format!("{act}, after"), got.join(", "), holds),
    )
}

/// With all capabilities, before any filter: only the limit of the namespace stands in the way.
fn nested(observed: &Facts) -> (Side, Side) {
    let got = text(observed, "unshare_with_all_capabilities").unwrap_or("nothing was seen");
    (
        Side::tried("make the cell's own user namespace, from outside", "it worked", true),
        Side::tried("make another inside, with all capabilities and no filter", got, got == "ENOSPC"),
    )
}

#[cfg(test)]
mod tests;
