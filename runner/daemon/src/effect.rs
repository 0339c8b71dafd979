//! From the verdict to the effect, and with it status and error. Pure.
//!
//! A cell has no channel to the outside but in ablation mode: the effect is `none` if the tree is gone, and `unknown` if
//! nobody saw that. With a channel it is `applied` on a complete exit, else `unknown`. `status` is `unknown` exactly when the effect is; `transient` when the effect is none and either no program ran
//! for want of something that comes back by itself, or the tool said so by its exit code; else `ok`.

use toolcell_receipts::statement::EffectBasis;
use toolcell_types::{Effect, Status, ToolError, Verdict};

use crate::verdict::{Judged, Seen};

/// What the attempt did, and what that makes of the call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attested {
    /// What it did to the outside.
    pub(crate) effect: Effect,
    /// How that is known.
    pub(crate) basis: EffectBasis,
    /// The call's status.
    pub(crate) status: Status,
    /// Whether the tool did not succeed.
    pub(crate) is_error: bool,
    /// Why not.
    pub(crate) error: Option<ToolError>,
}

/// A call with its effect.
#[derive(Debug)]
pub(crate) struct Settled {
    judged: Judged,
    attested: Attested,
}

impl Settled {
    /// Apart, to be carried on.
    pub(crate) fn into_parts(self) -> (Judged, Attested) {
        (self.judged, self.attested)
    }
}

/// Attests the effect.
pub(crate) fn attest(judged: Judged) -> Settled {
    let pending = judged.pending();
    let is_open = !pending.definition.effect_channels.is_empty();
    let attested = weigh((judged.seen(), is_open), &pending.complete_exit_codes, &pending.transient_exit_codes);
    Settled { judged, attested }
}

/// The rules. With what was seen stands whether a channel to the outside was open. Exit codes are those that mean success,
/// then those that mean "try again".
pub(crate) fn weigh((seen, is_open): (&Seen, bool), complete: &[i32], transient: &[i32]) -> Attested {
    let is_complete = matches!(seen.verdict, Verdict::Exited { exit_code } if complete.contains(&exit_code));
    // A tool that was never let go did nothing, whatever it could have done; of a lost one nobody knows.
    let may_have_acted = seen.started_on.is_some() || seen.verdict == Verdict::Lost;
    let (effect, basis) = match (seen.tree_gone, is_open && may_have_acted) {
        (false, _) => (Effect::Unknown, EffectBasis::TreeNotGone),
        (true, false) => (Effect::None, EffectBasis::NoOpenChannel),
        (true, true) if is_complete => (Effect::Applied, EffectBasis::OpenChannel),
        (true, true) => (Effect::Unknown, EffectBasis::OpenChannel),
    };
    let is_transient = match &seen.verdict {
        Verdict::Exited { exit_code } => transient.contains(exit_code),
        Verdict::StartFailed { errno, .. } => COMES_BACK.contains(&errno.as_str()),
        Verdict::Signaled { .. }
        | Verdict::WallLimit
        | Verdict::CpuLimit
        | Verdict::MemoryLimit
        | Verdict::PidsLimit
        | Verdict::OutputLimit
        | Verdict::Cancelled
        | Verdict::Lost
        | Verdict::Internal => false,
    };
    let status = match effect {
        Effect::Unknown => Status::Unknown,
        Effect::None | Effect::Applied if is_transient => Status::Transient,
        Effect::None | Effect::Applied => Status::Ok,
    };
    let is_error = !(is_complete && status == Status::Ok);
    let error = is_error.then(|| error(seen, effect));
    Attested { effect, basis, status, is_error, error }
}

/// Errors of the set-up that pass by themselves: memory, processes, descriptors, space, somebody else's lock.
const COMES_BACK: [&str; 9] = ["EAGAIN", "EBUSY", "EINTR", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "ETXTBSY", "EUSERS"];

fn error(seen: &Seen, effect: Effect) -> ToolError {
    let mut findings = seen.findings.clone();
    if effect == Effect::Unknown {
        let why = match seen.tree_gone {
            true => "a way to the outside was open (ablation mode), so that its effect is unknown",
            false => "processes of the call may still be there, so that its effect is unknown",
        };
        findings.push(why.to_owned());
    }
    ToolError {
        code: seen.verdict.cause().to_owned(),
        message: seen.message.clone(),
        remedy: seen.remedy.clone(),
        // The same as the answer's: effect none and, as there is an error, not complete.
        retryable: effect == Effect::None,
        findings,
    }
}

#[cfg(test)]
mod tests {
    use toolcell_types::Usage;

    use super::*;

    fn seen(verdict: Verdict, tree_gone: bool) -> Seen {
        Seen {
            verdict,
            tree_gone,
            message: "m".to_owned(),
            remedy: "r".to_owned(),
            findings: Vec::new(),
            limits_hit: Vec::new(),
            usage: Usage::default(),
            controls: Vec::new(),
            started_on: None,
        }
    }

    fn exited(exit_code: i32) -> Verdict {
        Verdict::Exited { exit_code }
    }

    fn failed(errno: &str) -> Verdict {
        Verdict::StartFailed { stage: "clone".to_owned(), errno: errno.to_owned() }
    }

    fn row(verdict: Verdict, tree_gone: bool) -> (Effect, Status, bool, Option<bool>) {
        let attested = weigh((&seen(verdict, tree_gone), false), &[0, 3], &[75]);
        (attested.effect, attested.status, attested.is_error, attested.error.map(|error| error.retryable))
    }

    #[test]
    fn a_complete_exit_is_ok_and_without_error() {
        for code in [0, 3] {
            assert_eq!(row(exited(code), true), (Effect::None, Status::Ok, false, None));
        }
    }

    #[test]
    fn every_other_end_of_a_tree_that_is_gone_is_an_error_without_effect() {
        for verdict in [
            exited(1),
            exited(137),
            Verdict::Signaled { signal: "SIGSEGV".to_owned() },
            Verdict::WallLimit,
            Verdict::CpuLimit,
            Verdict::MemoryLimit,
            Verdict::PidsLimit,
            Verdict::OutputLimit,
            Verdict::Cancelled,
            Verdict::Lost,
            Verdict::Internal,
            failed("ENOENT"),
            failed("EACCES"),
        ] {
            assert_eq!(row(verdict.clone(), true), (Effect::None, Status::Ok, true, Some(true)), "{verdict:?}");
        }
    }

    #[test]
    fn a_set_up_that_failed_for_want_of_something_and_the_tool_s_own_word_are_transient() {
        for verdict in [exited(75), failed("ENOMEM"), failed("EAGAIN"), failed("EMFILE")] {
            assert_eq!(row(verdict, true), (Effect::None, Status::Transient, true, Some(true)));
        }
    }

    #[test]
    fn without_proof_that_the_tree_is_gone_nothing_is_known_not_even_of_a_good_exit() {
        for verdict in [exited(0), exited(75), Verdict::Lost, Verdict::WallLimit, failed("ENOMEM")] {
            assert_eq!(row(verdict, false), (Effect::Unknown, Status::Unknown, true, Some(false)));
        }
        assert_eq!(weigh((&seen(exited(0), false), false), &[0], &[]).basis, EffectBasis::TreeNotGone);
    }

    #[test]
    fn with_a_channel_open_only_a_good_exit_says_what_was_done() {
        let of = |verdict: Verdict, started_on| {
            let attested = weigh((&Seen { started_on, ..seen(verdict, true) }, true), &[0], &[75]);
            (attested.effect, attested.basis, attested.status)
        };
        let started = Some(toolcell_receipts::UnixMicros(1));
        let open = EffectBasis::OpenChannel;
        assert_eq!(of(exited(0), started), (Effect::Applied, open, Status::Ok));
        for verdict in [exited(1), exited(75), Verdict::WallLimit] {
            assert_eq!(of(verdict, started), (Effect::Unknown, open, Status::Unknown));
        }
        assert_eq!(of(Verdict::Lost, None), (Effect::Unknown, open, Status::Unknown));
        let none = (Effect::None, EffectBasis::NoOpenChannel);
        let (effect, basis, _) = of(failed("EPERM"), None);
        assert_eq!((effect, basis), none, "what was never let go did nothing");
    }

    #[test]
    fn the_code_of_an_error_is_the_cause() {
        let error = weigh((&seen(Verdict::WallLimit, true), false), &[0], &[]).error.unwrap();
        assert_eq!((error.code.as_str(), error.message.as_str(), error.remedy.as_str()), ("wall_limit", "m", "r"));
    }
}
