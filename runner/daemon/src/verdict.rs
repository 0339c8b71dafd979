//! From what was seen to the verdict and its words. Pure.
//!
//! The cause is the launcher's, with one exception: where both streams together were more than `output_limit_bytes`, the
//! verdict is `output_limit` even if the program ended by itself before the kill reached it (the tie rule: our own kill
//! first). Set-up failures become `start_failed` with the stage `plan` (no plan could be made, or the launcher does not
//! take it), `mounts` (a mount that the caller may not have), `controls` (a required control does not hold;
//! EOPNOTSUPP), or the stage that the launcher names; `exec` is the only stage that the tool's own name can cause.

use toolcell_receipts::UnixMicros;
use toolcell_types::plan::{EndCause, EndReport, KillReason, LaunchFault, PlanUsage};
use toolcell_types::{ControlReport, LimitHit, Limits, Usage, Verdict, names};

use crate::cell::{End, Ended};
use crate::intent::Pending;
use crate::output::CapturedOutput;
use crate::plan::PlanFault;

/// ENOMEM (errno(3)): memory was too little.
const NO_MEMORY: i32 = 12;
/// EOPNOTSUPP, EINVAL, E2BIG (errno(3)): what fits where no system call failed.
const NOT_SUPPORTED: i32 = 95;
const INVALID: i32 = 22;
const TOO_BIG: i32 = 7;

/// What happened, in the contract's words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    /// Why it ended.
    pub(crate) verdict: Verdict,
    /// Whether no process of the attempt is left.
    pub(crate) tree_gone: bool,
    /// What happened, as one sentence; empty for a program that exited with 0.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) remedy: String,
    /// Details.
    pub(crate) findings: Vec<String>,
    /// Limits that were reached.
    pub(crate) limits_hit: Vec<LimitHit>,
    /// Figures.
    pub(crate) usage: Usage,
    /// All controls; empty if the tool was not let go.
    pub(crate) controls: Vec<ControlReport>,
    /// When the tool was let go.
    pub(crate) started_on: Option<UnixMicros>,
}

/// A call with its verdict.
#[derive(Debug)]
pub(crate) struct Judged {
    pending: Pending,
    seen: Seen,
    output: Option<CapturedOutput>,
    finished_on: UnixMicros,
}

impl Judged {
    /// The call.
    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    /// What happened.
    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Apart, to be carried on: with what it printed (none if the tool was not let go) and when the end was seen.
    pub(crate) fn into_parts(self) -> (Pending, Seen, Option<CapturedOutput>, UnixMicros) {
        (self.pending, self.seen, self.output, self.finished_on)
    }
}

/// Gives the end its words.
pub(crate) fn judge(ended: Ended) -> Judged {
    let (pending, end, output, finished_on) = ended.into_parts();
    let mut seen = see(end, &pending.definition.limits, output.as_ref());
    if pending.is_deadline_shorter && seen.verdict == Verdict::WallLimit {
        let deadline = LimitHit { limit: "deadline_ms".to_owned(), seen: "shorter than limits.wall_ms".to_owned() };
        seen.limits_hit.push(deadline);
    }
    Judged { pending, seen, output, finished_on }
}

fn see(end: End, limits: &Limits, output: Option<&CapturedOutput>) -> Seen {
    let mut seen = by_end(end, limits, output);
    let unread = output.into_iter().flat_map(|output| &output.unread);
    // First, as a receipt has room for so many only.
    seen.limits_hit.splice(..0, unread.map(|(name, why)| output_read(name.as_str(), why)));
    seen
}

/// No limit, but said in the same place, where nobody who looks at the output overlooks it.
fn output_read(name: &str, why: &str) -> LimitHit {
    LimitHit { limit: OUTPUT_READ.to_owned(), seen: format!("{name} was not read to its end: {why}") }
}

fn by_end(end: End, limits: &Limits, output: Option<&CapturedOutput>) -> Seen {
    match end {
        End::NeverLetGo => Seen::not_started(Verdict::Cancelled, true, CANCELLED),
        End::NoPlan(fault) => no_plan(&fault),
        End::Refused { fault, tree_gone } => refused(fault, tree_gone),
        End::Over { controls, started_on, report, unread } => {
            let mut seen = over(report, limits, output);
            seen.controls = controls;
            seen.started_on = Some(started_on);
            if let Some(error) = unread {
                seen.verdict = Verdict::Internal;
                seen.words(("the output could not be read, and the tree was killed".to_owned(), REPORT));
                seen.findings = vec![error.to_string()];
                seen.limits_hit.extend(["stdout", "stderr"].map(|name| output_read(name, &error.to_string())));
            }
            seen
        }
        End::Silent { started } => {
            let words = "the launcher says nothing about a cell that must have ended";
            let mut seen = Seen::not_started(Verdict::Internal, false, (words, REPORT));
            if let Some((controls, started_on)) = started {
                seen.controls = controls;
                seen.started_on = Some(started_on);
            }
            seen
        }
    }
}

const CANCELLED: (&str, &str) = ("the call was cancelled", "use a new call_id to run it after all");
const REPORT: &str = "this is a fault of the runner: report it with the log";

impl Seen {
    fn not_started(verdict: Verdict, tree_gone: bool, (message, remedy): (&str, &str)) -> Self {
        Self {
            verdict,
            tree_gone,
            message: message.to_owned(),
            remedy: remedy.to_owned(),
            findings: Vec::new(),
            limits_hit: Vec::new(),
            usage: Usage::default(),
            controls: Vec::new(),
            started_on: None,
        }
    }

    fn words(&mut self, (message, remedy): (String, &str)) {
        self.message = message;
        remedy.clone_into(&mut self.remedy);
    }
}

fn start_failed(stage: &str, errno: i32) -> Verdict {
    Verdict::StartFailed { stage: stage.to_owned(), errno: names::errno(errno) }
}

/// No cell was asked for, so that there is no tree.
fn no_plan(fault: &PlanFault) -> Seen {
    let (errno, remedy) = match fault {
        PlanFault::Memory { source, .. } => {
            (source.raw_os_error().unwrap_or(INVALID), "try again; the machine may be short of memory or descriptors")
        }
        PlanFault::TooLarge { .. } | PlanFault::Packet { .. } => {
            (TOO_BIG, "send less, for instance large input as a mount")
        }
        PlanFault::Encode { .. } | PlanFault::NoImage { .. } => (INVALID, REPORT),
    };
    let mut seen = Seen::not_started(start_failed("plan", errno), true, (&fault.to_string(), remedy));
    seen.findings.extend(std::error::Error::source(fault).map(ToString::to_string));
    seen
}

/// The launcher let no tool go.
fn refused(fault: LaunchFault, tree_gone: bool) -> Seen {
    let not_started =
        |verdict, message: String, remedy: &str| Seen::not_started(verdict, tree_gone, (message.as_str(), remedy));
    match fault {
        LaunchFault::BadPlan { detail } => {
            not_started(start_failed("plan", INVALID), format!("the launcher does not take the plan: {detail}"), REPORT)
        }
        LaunchFault::Mount { index, errno, detail } => not_started(
            start_failed("mounts", errno),
            format!("mount {index} is not possible: {detail}"),
            "mount only what the caller may read, and nothing of the runner's own or of /proc, /sys and /dev",
        ),
        LaunchFault::Control { id, detail, remedy } => {
            let mut seen = not_started(
                start_failed("controls", NOT_SUPPORTED),
                format!("the required control {id} does not hold: {detail}"),
                &remedy,
            );
            seen.findings.push(format!("CONTROL_UNAVAILABLE: {id}"));
            seen
        }
        LaunchFault::Stage { stage, errno, detail } => {
            let message = format!("the cell could not be set up: {stage}: {detail}: {}", names::errno(errno));
            not_started(start_failed(&stage, errno), message, start_remedy(&stage, errno))
        }
        LaunchFault::Killed { reason: KillReason::Cancelled } => {
            not_started(Verdict::Cancelled, CANCELLED.0.to_owned(), CANCELLED.1)
        }
        LaunchFault::Killed { reason: KillReason::OutputLimit } => {
            not_started(Verdict::Internal, "killed for its output before it could print".to_owned(), REPORT)
        }
    }
}

/// The tool was let go.
fn over(report: EndReport, limits: &Limits, output: Option<&CapturedOutput>) -> Seen {
    let EndReport { cause, limits_hit, usage, tree_gone } = report;
    let is_over_limit = output.is_some_and(|output| output.is_over_limit);
    let cause = if is_over_limit { output_first(cause) } else { cause };
    let (verdict, words) = words(cause, limits);
    let mut seen = Seen::not_started(verdict, tree_gone, (&words.0, words.1));
    seen.limits_hit = limits_hit.into_iter().map(|(limit, seen)| LimitHit { limit, seen }).collect();
    if is_over_limit && !seen.limits_hit.iter().any(|hit| hit.limit == OUTPUT_LIMIT) {
        let hit = LimitHit { limit: OUTPUT_LIMIT.to_owned(), seen: "counted by the daemon".to_owned() };
        seen.limits_hit.push(hit);
    }
    seen.usage = figures(usage, output);
    seen
}

const OUTPUT_LIMIT: &str = "output_limit_bytes";
/// Digest and size of a stream are those of what was read, and there was, or may have been, more.
const OUTPUT_READ: &str = "output_read";

fn figures(usage: PlanUsage, output: Option<&CapturedOutput>) -> Usage {
    let bytes = |stream: fn(&CapturedOutput) -> u64| output.map(stream);
    usage.into_usage(bytes(|output| output.stdout.total_bytes), bytes(|output| output.stderr.total_bytes))
}

/// Our own kills come first, then the kernel's, then the program's own end. A kill of ours that came before the output
/// was too much stays the cause.
fn output_first(cause: EndCause) -> EndCause {
    match cause {
        EndCause::WallLimit | EndCause::CpuLimit | EndCause::Cancelled | EndCause::OutputLimit => cause,
        EndCause::StartFailed { .. } | EndCause::Internal { .. } => cause,
        EndCause::Exited(_) | EndCause::Signaled(_) | EndCause::MemoryLimit | EndCause::PidsLimit => {
            EndCause::OutputLimit
        }
    }
}

fn words(cause: EndCause, limits: &Limits) -> (Verdict, (String, &'static str)) {
    match cause {
        EndCause::Exited(exit_code) => {
            let message = format!("the program exited with code {exit_code}");
            (Verdict::Exited { exit_code }, (message, "see its standard error"))
        }
        EndCause::Signaled(number) => {
            let signal = names::signal(number);
            let message = format!("the program was ended by {signal}, which the runner did not send");
            (Verdict::Signaled { signal }, (message, "see its standard error and limits_hit"))
        }
        EndCause::WallLimit => {
            let message = format!("killed after {} ms, the limit of the wall clock", limits.wall_ms);
            (Verdict::WallLimit, (message, "raise limits.wall_ms (and deadline_ms) or do less"))
        }
        EndCause::CpuLimit => {
            let message = format!("killed after {} ms of processor time, its limit", limits.cpu_ms);
            (Verdict::CpuLimit, (message, "raise limits.cpu_ms or do less"))
        }
        EndCause::MemoryLimit => {
            let message = format!("it needed more than {} bytes of memory, its limit", limits.memory_bytes);
            (Verdict::MemoryLimit, (message, "raise limits.memory_bytes or need less"))
        }
        EndCause::PidsLimit => {
            let message = format!("it needed more than {} processes, its limit", limits.pids);
            (Verdict::PidsLimit, (message, "raise limits.pids or start fewer"))
        }
        EndCause::OutputLimit => {
            let message = format!("it printed more than {} bytes, its limit", limits.output_limit_bytes);
            (Verdict::OutputLimit, (message, "raise limits.output_limit_bytes or print less"))
        }
        EndCause::Cancelled => (Verdict::Cancelled, (CANCELLED.0.to_owned(), CANCELLED.1)),
        EndCause::StartFailed { stage, errno } => {
            let name = names::errno(errno);
            let message = format!("the program could not be started: {stage}: {name}");
            let remedy = start_remedy(&stage, errno);
            (start_failed(&stage, errno), (message, remedy))
        }
        EndCause::Internal { detail } => (Verdict::Internal, (format!("the cell broke down: {detail}"), REPORT)),
    }
}

/// What the tool's definition or the arguments of the call can change about it.
fn start_remedy(stage: &str, errno: i32) -> &'static str {
    match stage {
        _ if errno == NO_MEMORY => {
            "raise limits.memory_bytes: making the cell and starting the program need a part of it"
        }
        "cwd" => {
            "name a working directory that is there inside and that everybody may enter: one of the image, /tmp, or one \
             shown with a mount"
        }
        "exec" => {
            "see the error: ENOENT is a program, or its interpreter, that is not there inside; EACCES one that not \
             everybody may execute; ENOEXEC a file that is no program and has no #! line"
        }
        _ => "see the stage and the error, and the log of the daemon",
    }
}

#[cfg(test)]
mod tests;
