//! `GET /v1/calls/{id}`, `POST /v1/calls/{id}/cancel`: one call, for those who may see it.
//!
//! A name is looked up among the asker's own calls first. An operator finds the calls of others, too: the live one, else
//! the newest of that name.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use toolcell_ledger::Attempt;
use toolcell_receipts::{assemble, dsse};
use toolcell_types::{CallId, CallState, ErrorCode, Problem, RunningCall};

use super::reply::{self, problem_response};
use super::request::{Asker, NamedCall, NoQuery};
use crate::answers;
use crate::calls::{CallKey, LiveCall};
use crate::daemon::{Daemon, fault};
use crate::identify::Identity;

/// The answer of a call that is over, or what is known of one that runs.
pub(super) async fn show(
    State(daemon): State<Arc<Daemon>>,
    asker: Asker,
    NamedCall(id): NamedCall,
    NoQuery: NoQuery,
) -> Response<Body> {
    match look(&daemon, &asker.identity, &id).await {
        Ok(Found::Answer(answer)) => reply::answer(answer),
        Ok(Found::Running(running)) => reply::json(StatusCode::OK, &running),
        Err(problem) => problem_response(problem),
    }
}

/// Cancels a call that runs (202); the answer of one that is over (200).
pub(super) async fn cancel(
    State(daemon): State<Arc<Daemon>>,
    asker: Asker,
    NamedCall(id): NamedCall,
    NoQuery: NoQuery,
) -> Response<Body> {
    if let Some(live) = live(&daemon, &asker.identity, &id) {
        tracing::info!(call_id = %id, by = asker.identity.principal().id, "a call is cancelled");
        live.cancel();
    }
    match look(&daemon, &asker.identity, &id).await {
        Ok(Found::Answer(answer)) => reply::answer(answer),
        Ok(Found::Running(running)) => reply::json(StatusCode::ACCEPTED, &running),
        Err(problem) => problem_response(problem),
    }
}

/// What there is of a call.
enum Found {
    Answer(Bytes),
    Running(RunningCall),
}

async fn look(daemon: &Daemon, identity: &Identity, id: &CallId) -> Result<Found, Problem> {
    daemon.ledger()?;
    if let Some(live) = live(daemon, identity, id)
        && let Some(running) = live.running().await
    {
        return Ok(Found::Running(running.clone()));
    }
    let attempt = recorded(daemon, identity, id).await?;
    if attempt.state == CallState::Submitting {
        return running(daemon, &attempt).await.map(Found::Running);
    }
    answers::of(daemon, identity.who(), &attempt).await.map(Found::Answer)
}

/// The live call of that name.
pub(super) fn live(daemon: &Daemon, identity: &Identity, id: &CallId) -> Option<Arc<LiveCall>> {
    let own = CallKey { tenant: identity.tenant().to_owned(), call_id: id.clone() };
    let own = daemon.calls.live(&own);
    own.or_else(|| if identity.sees_everything() { daemon.calls.live_named(id).pop() } else { None })
}

/// What the ledger has under that name.
///
/// # Errors
/// `NOT_FOUND`, in the same words for what is not there and for what is somebody else's.
pub(super) async fn recorded(daemon: &Daemon, identity: &Identity, id: &CallId) -> Result<Attempt, Problem> {
    let (tenant, key, sees_everything) = (identity.tenant().to_owned(), id.clone(), identity.sees_everything());
    let found = daemon.read(move |reader| match reader.latest(&tenant, key.as_str())? {
        Some(own) => Ok(Some(own)),
        None if sees_everything => Ok(reader.named(&key, 1)?.into_iter().next()),
        None => Ok(None),
    });
    found.await?.ok_or_else(|| {
        let mut problem = Problem::new(
            ErrorCode::NotFound,
            format!("there is no call {id}, or it is not yours"),
            "see GET /v1/calls",
        );
        problem.call_id = Some(id.to_string());
        problem
    })
}

/// What is told of a call whose intent stands in the ledger alone.
async fn running(daemon: &Daemon, attempt: &Attempt) -> Result<RunningCall, Problem> {
    let (entry, _intent) = answers::intent_of(daemon, attempt).await?;
    let envelope = dsse::envelope(&entry.payload, &entry.signature, &entry.keyid);
    assemble::running(&entry.payload, envelope).map_err(|error| fault("an intent cannot be read", &error))
}
