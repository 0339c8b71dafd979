//! `GET /v1/calls/{id}/stdout` and `/stderr`: what is kept, or with `?follow=1` everything as it comes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::Response;
use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use toolcell_ledger::Attempt;
use toolcell_types::{CallId, CallState, ErrorCode, Problem};

use super::calls::{live, recorded};
use super::reply::{self, problem_response};
use super::request::{Asker, NamedCall, Query};
use crate::answers;
use crate::calls::CallKey;
use crate::daemon::{Daemon, fault};
use crate::identify::Identity;
use crate::output::{Follower, Output, StreamName};

/// Pieces of at most one window (64 KiB) that wait for a client to take them.
const PIECES: usize = 1;

/// Standard output.
pub(super) async fn stdout(
    State(daemon): State<Arc<Daemon>>,
    asker: Asker,
    NamedCall(id): NamedCall,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    give(&daemon, &asker, (&id, StreamName::Stdout), query.as_deref()).await
}

/// Standard error.
pub(super) async fn stderr(
    State(daemon): State<Arc<Daemon>>,
    asker: Asker,
    NamedCall(id): NamedCall,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    give(&daemon, &asker, (&id, StreamName::Stderr), query.as_deref()).await
}

async fn give(
    daemon: &Daemon,
    asker: &Asker,
    (id, name): (&CallId, StreamName),
    query: Option<&str>,
) -> Response<Body> {
    match find(daemon, asker, (id, name), query).await {
        Ok(body) => reply::bytes(body),
        Err(problem) => problem_response(problem),
    }
}

async fn find(
    daemon: &Daemon,
    asker: &Asker,
    (id, name): (&CallId, StreamName),
    query: Option<&str>,
) -> Result<Body, Problem> {
    let identity = &asker.identity;
    let follow = Query::parse(query, &["follow"])?.flag("follow")?;
    daemon.ledger()?;
    let Some(output) = output(daemon, identity, id) else {
        let attempt = recorded(daemon, identity, id).await?;
        return stored(daemon, identity, &attempt, (name, follow)).await.map(Body::from);
    };
    if !follow {
        let kept = Bytes::from(output.captured(name).kept);
        return answers::hold(daemon, identity.who(), kept).await.map(Body::from);
    }
    let follower = output.follow(name).ok_or_else(|| beginning_gone(id, name))?;
    asker.follows.set(Some(Arc::clone(&output)));
    let (sender, body) = Channel::<Bytes>::new(PIECES);
    drop(tokio::spawn(pass_on(follower, sender)));
    Ok(Body::new(body))
}

/// The output of a call that runs, or that is over with a follower announced.
fn output(daemon: &Daemon, identity: &Identity, id: &CallId) -> Option<Arc<Output>> {
    let own = CallKey { tenant: identity.tenant().to_owned(), call_id: id.clone() };
    daemon.calls.output(&own).or_else(|| live(daemon, identity, id).map(|live| Arc::clone(live.output())))
}

/// From the stream to the client, until one of them ends. Dropping the follower lets the stream go on.
async fn pass_on(mut follower: Follower, mut sender: Sender<Bytes>) {
    while let Some(piece) = follower.next().await {
        if sender.send_data(piece).await.is_err() {
            return;
        }
    }
}

/// What was kept of a call that is over.
async fn stored(
    daemon: &Daemon,
    identity: &Identity,
    attempt: &Attempt,
    (name, follow): (StreamName, bool),
) -> Result<Bytes, Problem> {
    if attempt.state == CallState::Submitting {
        return Ok(Bytes::new());
    }
    let (_entry, outcome) = answers::outcome_of(daemon, attempt).await?;
    let stream = match name {
        StreamName::Stdout => outcome.stdout,
        StreamName::Stderr => outcome.stderr,
    };
    if follow && stream.dropped_bytes > 0 {
        return Err(beginning_gone(&attempt.call_id, name));
    }
    let share = answers::room(daemon, identity.who(), stream.kept_bytes).await?;
    let blobs = Arc::clone(&daemon.blobs);
    let read = tokio::task::spawn_blocking(move || blobs.read(&stream.kept, stream.kept_bytes)).await;
    match read {
        Ok(Ok(bytes)) => Ok(answers::held(bytes.into(), share)),
        Ok(Err(error)) => {
            tracing::error!(error = &error as &dyn std::error::Error, "kept output is lost");
            Err(answers::lost(attempt))
        }
        Err(error) => Err(fault("a read of kept output did not end", &error)),
    }
}

fn beginning_gone(id: &CallId, name: StreamName) -> Problem {
    let name = name.as_str();
    let detail = format!("{name} can no longer be followed from its first byte: a part of it was not kept");
    let remedy = format!(
        "GET /v1/calls/{id}/{name} without follow gives what is kept; announce a follower with \
                          `Prefer: respond-async, follow`"
    );
    let mut problem = Problem::new(ErrorCode::InvalidRequest, detail, remedy);
    problem.call_id = Some(id.to_string());
    problem
}
