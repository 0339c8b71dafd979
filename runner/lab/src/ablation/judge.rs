//! From what was seen of a call to its outcome. Pure: one rule, one place.
//!
//! A probe's word counts only together with its exit status, the kernel's word about the controls, and what the witnesses
//! outside have seen. What does not fit together is broken, never a stop.

use toolcell_types::{ControlId, ControlState, Verdict};

use super::outcome::Outcome;
use super::words::Witness;

/// Most of a text of a probe's that is kept, in characters.
const TEXT_MAX: usize = 200;
/// Signals by which a filter, a limit or the cell's end kills; a crash has others.
const KILLS: [&str; 4] = ["SIGSYS", "SIGKILL", "SIGXCPU", "SIGXFSZ"];

/// What was seen of one call.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) verdict: Verdict,
    /// The last line of standard output.
    pub(super) last_line: String,
    /// The end of standard error.
    pub(super) complaint: String,
    /// Every control as it was reported.
    pub(super) controls: Vec<(ControlId, ControlState)>,
    /// Every witness, and whether it has seen that the probe got through.
    pub(super) witnesses: Vec<(Witness, bool)>,
}

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Controls to be off.
    pub(super) off: &'a [ControlId],
    /// Controls that the operator accepted as missing.
    pub(super) accepted: &'a [ControlId],
}

/// The outcome.
pub(super) fn judge(asked: Asked<'_>, seen: &Seen) -> Outcome {
    if let Some(outcome) = judge_controls(asked, &seen.controls) {
        return outcome;
    }
    let (word, rest) = seen.last_line.split_once(' ').unwrap_or((seen.last_line.as_str(), ""));
    let rest = short(rest);
    let claim = match (&seen.verdict, word) {
        (Verdict::Exited { exit_code: 0 }, "REACHED") => return reached(rest, &seen.witnesses),
        (Verdict::Exited { exit_code: 1 }, "STOPPED") => Outcome::Stopped { how: rest },
        (Verdict::Exited { exit_code: 3 }, "NOT-APPLICABLE") => Outcome::NotApplicable { why: rest },
        (_, "REACHED") => {
            return broken(format!("it said REACHED {rest}, and then: {}", told(&seen.verdict)));
        }
        (Verdict::Exited { .. }, _) => return broken(breakdown(seen)),
        (Verdict::Signaled { signal }, _) if !KILLS.contains(&signal.as_str()) => return broken(breakdown(seen)),
        (
            Verdict::Signaled { .. }
            | Verdict::WallLimit
            | Verdict::CpuLimit
            | Verdict::MemoryLimit
            | Verdict::PidsLimit
            | Verdict::OutputLimit,
            _,
        ) => {
            let words =
                if word == "STOPPED" { format!("{}: {rest}", told(&seen.verdict)) } else { told(&seen.verdict) };
            Outcome::Stopped { how: words }
        }
        (Verdict::Cancelled | Verdict::StartFailed { .. } | Verdict::Lost | Verdict::Internal, _) => {
            return broken(breakdown(seen));
        }
    };
    match seen.witnesses.iter().find(|(witness, has_seen)| *has_seen && *witness != Witness::Throttled) {
        Some((witness, _)) => {
            broken(format!("it says {}, and the witness {witness} saw it get through", seen.last_line))
        }
        None => claim,
    }
}

/// None if every control is as it was asked for.
fn judge_controls(asked: Asked<'_>, controls: &[(ControlId, ControlState)]) -> Option<Outcome> {
    let state_of = |id: ControlId| controls.iter().find(|(known, _)| *known == id).map(|(_, state)| *state);
    for id in asked.off {
        match state_of(*id) {
            Some(ControlState::Ablated | ControlState::Unavailable) => {}
            Some(ControlState::Enforced) => return Some(broken(format!("{id} was to be off, and is enforced"))),
            None => return Some(broken(format!("{id} was to be off, and is not reported"))),
        }
    }
    for (id, state) in controls.iter().filter(|(id, _)| !asked.off.contains(id)) {
        match state {
            ControlState::Ablated if asked.off.is_empty() => {
                return Some(broken(format!("{id} is off, and nobody asked for that")));
            }
            ControlState::Unavailable if id.is_required_by_default() && !asked.accepted.contains(id) => {
                return Some(broken(format!("{id} is unavailable, and the call ran")));
            }
            ControlState::Enforced | ControlState::Ablated | ControlState::Unavailable => {}
        }
    }
    None
}

fn reached(what: String, witnesses: &[(Witness, bool)]) -> Outcome {
    match witnesses.iter().find(|(_, has_seen)| !has_seen) {
        // How much of a processor it could have had nobody knows from inside: here the kernel's counter is the word.
        Some((Witness::Throttled, _)) => Outcome::Stopped { how: format!("held back by the kernel: {what}") },
        Some((witness, _)) => broken(format!("it says REACHED {what}, and the witness {witness} saw nothing of it")),
        None => Outcome::Reached { what },
    }
}

fn broken(why: impl Into<String>) -> Outcome {
    Outcome::Broken { why: why.into() }
}

fn breakdown(seen: &Seen) -> String {
    let said = if seen.last_line.is_empty() { "nothing".to_owned() } else { short(&seen.last_line) };
    let complaint =
        if seen.complaint.is_empty() { String::new() } else { format!("; stderr: {}", short(&seen.complaint)) };
    format!("{}, having said {said}{complaint}", told(&seen.verdict))
}

fn told(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Exited { exit_code } => format!("exit {exit_code}"),
        Verdict::Signaled { signal } => format!("killed by {signal}"),
        Verdict::StartFailed { stage, errno } => format!("not started: {stage}, {errno}"),
        Verdict::WallLimit
        | Verdict::CpuLimit
        | Verdict::MemoryLimit
        | Verdict::PidsLimit
        | Verdict::OutputLimit
        | Verdict::Cancelled
        | Verdict::Lost
        | Verdict::Internal => verdict.cause().to_owned(),
    }
}

fn short(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= TEXT_MAX {
        return text.to_owned();
    }
    text.chars().take(TEXT_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
