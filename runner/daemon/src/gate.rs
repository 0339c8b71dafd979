//! The gate: from a request with a sender to a call that has its place, or every finding.
//!
//! Order (the first finding is the refusal's code): LEDGER_INVALID, KEY_PAYLOAD_MISMATCH, the replay of a complete call,
//! OUTCOME_UNKNOWN, then what the policy says, then BUDGET_EXHAUSTED; after these, about an otherwise admitted call,
//! CONTROL_UNAVAILABLE and QUEUE_FULL. Guarantees: a refusal has changed nothing; of many submissions of one call one is
//! admitted. This version has one attempt per call, so that a failed call is BUDGET_EXHAUSTED.

mod earlier;
mod missing;

use bytes::Bytes;
use toolcell_policy::AdmittedCall;
use toolcell_types::{ControlId, ErrorCode, Limits, Problem};

use crate::answers;
use crate::calls::{CallKey, FOR_OPERATORS, LIVE_MAX, NoPlace, OWN_MAX, Place};
use crate::daemon::Daemon;
use crate::identify::IdentifiedCall;
use crate::output::Output;
use earlier::Earlier;

/// A call that may start: the policy said yes, and nobody else starts it.
#[derive(Debug)]
pub(crate) struct Admitted {
    call: AdmittedCall,
    asked: IdentifiedCall,
    place: Place,
}

impl Admitted {
    /// What is going to run.
    pub(crate) fn call(&self) -> &AdmittedCall {
        &self.call
    }

    /// What was asked for, and by whom.
    pub(crate) fn asked(&self) -> &IdentifiedCall {
        &self.asked
    }

    /// Apart, to be carried on.
    pub(crate) fn into_parts(self) -> (AdmittedCall, IdentifiedCall, Place) {
        (self.call, self.asked, self.place)
    }
}

/// What the gate says, if it does not refuse.
#[derive(Debug)]
pub(crate) enum Gated {
    /// The call is complete: this is its stored answer.
    Replay(Bytes),
    /// The call may start.
    Admitted(Box<Admitted>),
}

/// Checks everything, and takes a place for the call.
///
/// # Errors
/// The refusal, with every finding whose inputs are known.
pub(crate) async fn admit(daemon: &Daemon, asked: IdentifiedCall) -> Result<Gated, Problem> {
    daemon.ledger()?;
    let call = match judge(daemon, &asked).await? {
        Judged::Replay(answer) => return Ok(Gated::Replay(answer)),
        Judged::Allowed(call) => call,
    };
    controls(daemon, &asked)?;
    deadline(daemon, &asked)?;
    let place = place(daemon, &asked, &call)?;
    // Between the first look and the place, another submission of the same call may have run to its end.
    match judge(daemon, &asked).await? {
        Judged::Replay(answer) => Ok(Gated::Replay(answer)),
        Judged::Allowed(call) => Ok(Gated::Admitted(Box::new(Admitted { call: *call, asked, place }))),
    }
}

enum Judged {
    Replay(Bytes),
    Allowed(Box<AdmittedCall>),
}

/// What the ledger knows of this call, and what the policy says.
async fn judge(daemon: &Daemon, asked: &IdentifiedCall) -> Result<Judged, Problem> {
    let latest = daemon.latest(call_key(asked)).await?;
    let request = asked.decoded();
    let decided = daemon.policy.decide(asked.identity().principal(), request.request());
    let earlier = earlier::earlier(latest.as_ref(), (&request.digest(), &request.identity()));
    let refusal = match (earlier, latest) {
        (Earlier::None, _) => return decided.map(|call| Judged::Allowed(Box::new(call))),
        (Earlier::Complete, Some(attempt)) => {
            return answers::of(daemon, asked.identity().who(), &attempt).await.map(Judged::Replay);
        }
        (Earlier::Refused(refusal), _) => refusal,
        (Earlier::Complete, None) => return decided.map(|call| Judged::Allowed(Box::new(call))),
    };
    let mut refusal = earlier::merge(*refusal, decided.err());
    if refusal.code == ErrorCode::OutcomeUnknown {
        refusal.live = Some(daemon.calls.live(&call_key(asked)).is_some());
    }
    refusal.call_id = Some(request.request().call_id.to_string());
    Err(refusal)
}

/// Whose call it is, and its name.
pub(crate) fn call_key(asked: &IdentifiedCall) -> CallKey {
    CallKey { tenant: asked.identity().tenant().to_owned(), call_id: asked.decoded().request().call_id.clone() }
}

/// Refuses what could only fail: required controls that are known to be missing, all of them at once.
fn controls(daemon: &Daemon, asked: &IdentifiedCall) -> Result<(), Problem> {
    match missing::refusal(&daemon.unavailable, &daemon.accept_unavailable) {
        None => Ok(()),
        Some(problem) => Err(about(asked, problem)),
    }
}

/// Refuses a call whose time is up before it began.
fn deadline(daemon: &Daemon, asked: &IdentifiedCall) -> Result<(), Problem> {
    if asked.decoded().left_ms(daemon.clock.monotonic()) != Some(0) {
        return Ok(());
    }
    let detail = "deadline_ms ran out before the call could start; nothing has run";
    Err(about(asked, Problem::new(ErrorCode::QueueFull, detail, "send it again, with a longer deadline_ms")))
}

fn place(daemon: &Daemon, asked: &IdentifiedCall, call: &AdmittedCall) -> Result<Place, Problem> {
    let request = asked.decoded();
    let digests = (request.digest(), request.identity());
    let whose = (call_key(asked), asked.identity().who().is_operator);
    // Decoding took this only in ablation mode.
    let is_capped = !request.request().ablated().has(ControlId::OutputCap);
    let allowed = if is_capped { call.limits.output_limit_bytes } else { u64::MAX };
    let limits = Limits { output_limit_bytes: allowed, ..call.limits };
    daemon.calls.claim(whose, digests, Output::new(&limits)).map_err(|refused| {
        let problem = match refused {
            NoPlace::Live(live) if live.is_same_request(&digests.0, &digests.1) => {
                Problem { live: Some(true), ..earlier::unknown("the call is running") }
            }
            NoPlace::Live(_other) => earlier::mismatch(),
            NoPlace::Full => Problem::new(
                ErrorCode::QueueFull,
                format!(
                    "calls of everybody take all places that this daemon has ({LIVE_MAX}, of which {FOR_OPERATORS} are \
                     for operators)"
                ),
                "send it again when one of them is over",
            ),
            NoPlace::OwnFull => Problem::new(
                ErrorCode::QueueFull,
                format!("{OWN_MAX} of your calls are live or wait for a follower, which is the most for one user"),
                "send it again when one of yours is over (GET /v1/calls shows them), or cancel one",
            ),
            NoPlace::Ending => {
                Problem::new(ErrorCode::QueueFull, "the daemon is ending", "send it again once it was started again")
            }
        };
        about(asked, problem)
    })
}

/// Names the call.
fn about(asked: &IdentifiedCall, mut problem: Problem) -> Problem {
    problem.call_id = Some(asked.decoded().request().call_id.to_string());
    problem
}
