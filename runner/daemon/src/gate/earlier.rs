//! What the ledger's memory of a call means for the same call again. Pure.

use toolcell_ledger::Attempt;
use toolcell_types::{CallState, ErrorCode, Finding, Problem, Sha256};

/// What an earlier attempt means.
#[derive(Debug, PartialEq)]
pub(super) enum Earlier {
    /// There is none.
    None,
    /// The same request, complete: its answer is replayed.
    Complete,
    /// Nothing may start.
    Refused(Box<Problem>),
}

/// Judges the newest attempt under the request's name. `digests` are those of the request and of its identity.
pub(super) fn earlier(attempt: Option<&Attempt>, digests: (&Sha256, &Sha256)) -> Earlier {
    let Some(attempt) = attempt else { return Earlier::None };
    let by_state = match attempt.state {
        CallState::Complete => None,
        CallState::Submitting => Some(unknown("the call has an intent and no outcome")),
        CallState::Unknown => Some(unknown("the effect of the call's last attempt is unknown")),
        CallState::Failed => Some(Problem::new(
            ErrorCode::BudgetExhausted,
            format!(
                "the call has failed, and one attempt is all it has; its answer is GET /v1/calls/{}",
                attempt.call_id
            ),
            "use a new call_id to try again",
        )),
    };
    if attempt.is_same_request(digests.0, digests.1) {
        return by_state.map_or(Earlier::Complete, |refusal| Earlier::Refused(Box::new(refusal)));
    }
    Earlier::Refused(Box::new(merge(mismatch(), by_state)))
}

/// The same name with another request.
pub(super) fn mismatch() -> Problem {
    Problem::new(
        ErrorCode::KeyPayloadMismatch,
        "this call_id was used with another request",
        "use a new call_id, or send exactly the request that was sent first",
    )
}

/// An attempt that is not settled. Whether it is live is for the caller to say.
pub(super) fn unknown(detail: &str) -> Problem {
    let mut problem = Problem::new(
        ErrorCode::OutcomeUnknown,
        detail,
        "look at GET /v1/calls/{call_id}: wait for it or cancel it while it is live, else use a new call_id for new work",
    );
    problem.live = Some(false);
    problem
}

/// One refusal of two: the code that comes first in the gate's order speaks, all findings are listed in that order.
pub(super) fn merge(one: Problem, other: Option<Problem>) -> Problem {
    let Some(other) = other else { return one };
    let (mut lead, second) = if other.code < one.code { (other, one) } else { (one, other) };
    lead.findings.extend(second.findings);
    lead.findings.sort_by_key(|Finding { code, .. }| *code);
    lead.expected_schema = lead.expected_schema.or(second.expected_schema);
    lead
}

#[cfg(test)]
mod tests {
    use toolcell_ledger::AttemptKey;
    use toolcell_types::CallId;

    use super::*;

    const REQUEST: Sha256 = Sha256([1; 32]);
    const IDENTITY: Sha256 = Sha256([2; 32]);
    const OTHER: Sha256 = Sha256([3; 32]);

    fn attempt(state: CallState) -> Attempt {
        Attempt {
            key: AttemptKey { tenant: "uid:1".to_owned(), key: "a".to_owned(), attempt: 1 },
            call_id: CallId::new("a").unwrap(),
            tool: "python".to_owned(),
            request: REQUEST,
            identity: Some(IDENTITY),
            state,
            submitter: "uid:1".to_owned(),
            submitted_us: 0,
            intent_index: 1,
            outcome_index: None,
        }
    }

    fn codes(earlier: &Earlier) -> Vec<ErrorCode> {
        match earlier {
            Earlier::None | Earlier::Complete => Vec::new(),
            Earlier::Refused(problem) => {
                assert_eq!(problem.code, problem.findings[0].code);
                problem.findings.iter().map(|finding| finding.code).collect()
            }
        }
    }

    #[test]
    fn a_new_name_is_free() {
        assert_eq!(earlier(None, (&REQUEST, &IDENTITY)), Earlier::None);
    }

    #[test]
    fn the_same_request_replays_if_complete_and_starts_nothing_otherwise() {
        for digests in [(&REQUEST, &OTHER), (&OTHER, &IDENTITY)] {
            assert_eq!(earlier(Some(&attempt(CallState::Complete)), digests), Earlier::Complete);
            for (state, code) in [
                (CallState::Submitting, ErrorCode::OutcomeUnknown),
                (CallState::Unknown, ErrorCode::OutcomeUnknown),
                (CallState::Failed, ErrorCode::BudgetExhausted),
            ] {
                assert_eq!(codes(&earlier(Some(&attempt(state)), digests)), [code]);
            }
        }
    }

    #[test]
    fn another_request_is_a_mismatch_whatever_the_state_and_never_a_replay() {
        let found = |state| codes(&earlier(Some(&attempt(state)), (&OTHER, &OTHER)));
        assert_eq!(found(CallState::Complete), [ErrorCode::KeyPayloadMismatch]);
        assert_eq!(found(CallState::Unknown), [ErrorCode::KeyPayloadMismatch, ErrorCode::OutcomeUnknown]);
        assert_eq!(found(CallState::Failed), [ErrorCode::KeyPayloadMismatch, ErrorCode::BudgetExhausted]);
    }

    #[test]
    fn merged_refusals_list_everything_and_the_first_in_gate_order_speaks() {
        let budget = Problem::new(ErrorCode::BudgetExhausted, "b", "");
        let mut arguments = Problem::new(ErrorCode::InvalidArguments, "a", "fix them");
        arguments.expected_schema = Some(serde_json::json!({}));
        let merged = merge(budget, Some(arguments));
        assert_eq!((merged.code, merged.remedy.as_str()), (ErrorCode::InvalidArguments, "fix them"));
        assert_eq!(merged.findings.len(), 2);
        assert!(merged.expected_schema.is_some());
    }
}
