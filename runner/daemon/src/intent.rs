//! The promise: what is going to run is signed and durable before anything starts.

use toolcell_ledger::{Append, AttemptKey, Committed, Record};
use toolcell_receipts::statement::{Definition, Intent, PlannedControl, StatementError};
use toolcell_receipts::{UnixMicros, assemble, dsse};
use toolcell_types::{ControlId, ErrorCode, Facts, Limits, Problem, RunningCall};

use crate::daemon::{Daemon, fault, ledger_problem};
use crate::decode::Prefer;
use crate::gate::Admitted;

/// The attempt of every call in this version.
pub(crate) const FIRST_ATTEMPT: u32 = 1;

/// A call whose intent is signed.
#[derive(Debug)]
pub(crate) struct Intended {
    admitted: Admitted,
    definition: Definition,
    intent_index: u64,
    running: RunningCall,
}

impl Intended {
    /// What a controller is told until the outcome is there.
    pub(crate) fn running(&self) -> &RunningCall {
        &self.running
    }

    /// How the answer is to come.
    pub(crate) fn prefer(&self) -> Prefer {
        self.admitted.asked().decoded().prefer()
    }

    /// Apart, to be carried on.
    pub(crate) fn into_parts(self) -> (Admitted, Definition, u64) {
        (self.admitted, self.definition, self.intent_index)
    }
}

/// Signs the intent and waits until it is durable.
///
/// # Errors
/// `INVALID_REQUEST` if it does not fit a receipt, `QUEUE_FULL` if there is no room for it, `OUTCOME_UNKNOWN` if the call
/// has an attempt after all, `LEDGER_INVALID` if nothing can be written. Nothing has started and nothing will.
pub(crate) async fn sign(daemon: &Daemon, admitted: Admitted) -> Result<Intended, Problem> {
    let definition = define(daemon, &admitted)?;
    let planned = ControlId::ALL.map(|id| PlannedControl {
        id,
        required: id.is_required_by_default() && !daemon.accept_unavailable.contains(&id),
        // What is asked for is the launcher's to say, once it knows the machine; the outcome has it.
        requested: Facts::new(),
    });
    let intent = Intent { definition, planned: planned.to_vec() };
    let committed = append(daemon, &admitted, &intent).await?;
    let envelope = dsse::envelope(&committed.payload, &committed.signature, &committed.keyid);
    let running = assemble::running(&committed.payload, envelope)
        .map_err(|error| fault("a signed intent could not be read back", &error))?;
    let live = admitted.place().live();
    if let Prefer::RespondAsync { follow: true } = admitted.asked().decoded().prefer() {
        live.output().reserve();
    }
    live.set_running(running.clone());
    Ok(Intended { admitted, definition: intent.definition, intent_index: committed.index, running })
}

fn define(daemon: &Daemon, admitted: &Admitted) -> Result<Definition, Problem> {
    let (call, asked) = (admitted.call(), admitted.asked());
    let request = asked.decoded();
    // The policy in force was compared with the images that there are, when the daemon started.
    let image = toolcell_images::find(&call.image).ok_or_else(|| {
        let detail = format!("there is no image {:?}", call.image);
        Problem::new(ErrorCode::PermissionDenied, detail, "name an image that is there")
    })?;
    let submitted_on = daemon.clock.wall();
    Ok(Definition {
        request: request.digest(),
        call_id: request.request().call_id.clone(),
        attempt: FIRST_ATTEMPT,
        tool: call.tool.clone(),
        tool_digest: call.tool_digest,
        limits: within_deadline(call.limits, request.left_ms(daemon.clock.monotonic())),
        mounts: request.request().mounts.clone(),
        labels: request.request().labels.clone(),
        effect_channels: Vec::new(),
        policy: daemon.policy.digest(),
        image: image.reference,
        submitter: asked.identity().submitter(),
        executor: daemon.executor.clone(),
        invocation_id: invocation_id(submitted_on),
        submitted_on,
    })
}

/// A UUIDv7 of that time (RFC 9562): sorts by it, and 74 random bits keep it from being met again.
fn invocation_id(at: UnixMicros) -> String {
    let nanos = u32::try_from(at.0 % 1_000_000).unwrap_or(0) * 1000;
    let timestamp = uuid::Timestamp::from_unix(uuid::NoContext, at.0 / 1_000_000, nanos);
    uuid::Uuid::new_v7(timestamp).to_string()
}

/// The wall clock is the shorter of the limit and of what is left of `deadline_ms`.
fn within_deadline(limits: Limits, left_ms: Option<u64>) -> Limits {
    // A deadline that ran out just now leaves the shortest clock there is.
    let wall_ms = left_ms.map_or(limits.wall_ms, |left| left.clamp(1, limits.wall_ms));
    Limits { wall_ms, ..limits }
}

async fn append(daemon: &Daemon, admitted: &Admitted, intent: &Intent) -> Result<Committed, Problem> {
    let definition = &intent.definition;
    let draft = intent.draft().map_err(|error| draft_problem(&error))?;
    let identity = admitted.asked().identity();
    let (done, committed) = tokio::sync::oneshot::channel();
    daemon.ledger()?.append(Append {
        header: daemon.header_of(identity.principal()),
        record: Record::Intent {
            key: AttemptKey {
                tenant: identity.tenant().to_owned(),
                key: definition.call_id.to_string(),
                attempt: definition.attempt,
            },
            call_id: definition.call_id.clone(),
            tool: definition.tool.clone(),
            request: definition.request,
            identity: Some(admitted.asked().decoded().identity()),
            submitter: identity.principal().id.clone(),
        },
        payload: Box::new(move |position| draft.finish(position).map_err(Into::into)),
        answer: None,
        done: Box::new(move |result| {
            // Nobody waits any more only if the daemon is being torn down.
            drop(done.send(result));
        }),
    });
    match committed.await {
        Ok(Ok(committed)) => Ok(committed),
        Ok(Err(error)) => Err(ledger_problem(&error)),
        Err(error) => Err(fault("the ledger's writer is gone", &error)),
    }
}

fn draft_problem(error: &StatementError) -> Problem {
    match error.code() {
        Some(code) => Problem::new(code, error.to_string(), error.remedy()),
        None => fault("an intent could not be written down", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_s_name_begins_with_its_time_and_is_new_each_time() {
        let at = UnixMicros(1_796_000_000_123_456);
        let (one, other) = (invocation_id(at), invocation_id(at));
        assert!(one.starts_with("01a229f1-287b-7"), "{one}");
        assert_eq!((one.len(), &one[14..15]), (36, "7"));
        assert_ne!(one, other);
    }

    #[test]
    fn a_deadline_shortens_the_wall_clock_and_never_lengthens_it() {
        let limits = Limits { wall_ms: 1000, ..Limits::default() };
        let wall = |left| within_deadline(limits, left).wall_ms;
        assert_eq!((wall(None), wall(Some(400)), wall(Some(5000)), wall(Some(0))), (1000, 400, 1000, 1));
    }
}
