//! The promise: what is going to run is signed and durable before anything starts.

use toolcell_ledger::{Append, AttemptKey, Committed, Record};
use toolcell_receipts::dsse;
use toolcell_receipts::statement::{Definition, Intent, PlannedControl, StatementError};
use toolcell_types::{CallState, ControlId, Problem, RunningCall};

use crate::calls::Place;
use crate::cell::{Armed, Hold};
use crate::daemon::{Daemon, completion, fault};
use crate::decode::Prefer;
use crate::identify::IdentifiedCall;

/// The attempt of every call in this version.
pub(crate) const FIRST_ATTEMPT: u32 = 1;

/// A call that may not be taken back: what is going to run, and the cell that waits for it.
#[derive(Debug)]
pub(crate) struct Pending {
    /// What is going to run, as the intent says.
    pub(crate) definition: Definition,
    /// Index of the intent.
    pub(crate) intent_index: u64,
    /// Whether `deadline_ms` is shorter than the limit of the wall clock.
    pub(crate) is_deadline_shorter: bool,
    /// Exit codes that mean success.
    pub(crate) complete_exit_codes: Vec<i32>,
    /// Exit codes that mean "try again".
    pub(crate) transient_exit_codes: Vec<i32>,
    /// The call's place.
    pub(crate) place: Place,
}

/// A call whose intent is signed.
#[derive(Debug)]
pub(crate) struct Intended {
    pending: Pending,
    hold: Hold,
    running: RunningCall,
    prefer: Prefer,
}

impl Intended {
    /// What a controller is told until the outcome is there.
    pub(crate) fn running(&self) -> &RunningCall {
        &self.running
    }

    /// How the answer is to come.
    pub(crate) fn prefer(&self) -> Prefer {
        self.prefer
    }

    /// Apart, to be carried on.
    pub(crate) fn into_parts(self) -> (Pending, Hold) {
        (self.pending, self.hold)
    }
}

/// Signs the intent and waits until it is durable. Meanwhile the cell waits; without an intent it is killed.
///
/// # Errors
/// `INVALID_REQUEST` if it does not fit a receipt, `QUEUE_FULL` if there is no room for it, `OUTCOME_UNKNOWN` if the call
/// has an attempt after all, `LEDGER_INVALID` if nothing can be written. Nothing has started and nothing will.
pub(crate) async fn sign(daemon: &Daemon, armed: Armed) -> Result<Intended, Problem> {
    let (asked, prospect, hold) = armed.into_parts();
    let planned = ControlId::ALL.map(|id| PlannedControl {
        id,
        required: id.is_required_by_default() && !daemon.accept_unavailable.contains(&id),
        requested: hold.requested(id),
    });
    let intent = Intent { definition: prospect.definition, planned: planned.to_vec() };
    let committed = append(daemon, &asked, &intent).await?;
    let envelope = dsse::envelope(&committed.payload, &committed.signature, &committed.keyid);
    let running = RunningCall {
        call_id: intent.definition.call_id.clone(),
        attempt: intent.definition.attempt,
        state: CallState::Submitting,
        intent: envelope,
    };
    let (live, prefer) = (prospect.place.live(), asked.decoded().prefer());
    if let Prefer::RespondAsync { follow: true } = prefer {
        live.output().reserve();
    }
    live.set_running(running.clone());
    let pending = Pending {
        definition: intent.definition,
        intent_index: committed.index,
        is_deadline_shorter: prospect.is_deadline_shorter,
        complete_exit_codes: prospect.complete_exit_codes,
        transient_exit_codes: prospect.transient_exit_codes,
        place: prospect.place,
    };
    Ok(Intended { pending, hold, running, prefer })
}

async fn append(daemon: &Daemon, asked: &IdentifiedCall, intent: &Intent) -> Result<Committed, Problem> {
    let definition = &intent.definition;
    let draft = intent.draft().map_err(|error| draft_problem(&error))?;
    let identity = asked.identity();
    let (done, committed) = completion();
    daemon.ledger()?.append(Append {
        header: daemon.header(
            &definition.executor,
            (&identity.principal().id, identity.principal().role.as_str()),
            definition.submitted_on,
        ),
        record: Record::Intent {
            key: AttemptKey {
                tenant: identity.tenant().to_owned(),
                key: definition.call_id.to_string(),
                attempt: definition.attempt,
            },
            call_id: definition.call_id.clone(),
            tool: definition.tool.clone(),
            request: definition.request,
            identity: Some(asked.decoded().identity()),
            submitter: identity.principal().id.clone(),
        },
        payload: Box::new(move |position| draft.finish(position).map_err(Into::into)),
        answer: None,
        done,
    });
    committed.await
}

fn draft_problem(error: &StatementError) -> Problem {
    match error.code() {
        Some(code) => Problem::new(code, error.to_string(), error.remedy()),
        None => fault("an intent could not be written down", error),
    }
}
