//! `POST /v1/calls`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use toolcell_types::{Problem, RunningCall};

use super::reply::{self, REPLAYED, problem_response};
use super::request::{self, Asker, Query};
use crate::answers;
use crate::daemon::{Daemon, fault};
use crate::decode::RawCall;
use crate::pipeline::{self, Reply};

/// How long each stage took (W3C Server Timing).
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Runs a call: 200 with the answer, 202 with the running call where that was preferred.
pub(super) async fn submit(
    State(daemon): State<Arc<Daemon>>,
    asker: Asker,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let who = asker.identity.who();
    match take(Arc::clone(&daemon), asker, (query, headers), body).await {
        Ok(Reply::Answer(answer, stages)) => match answers::hold(&daemon, who, answer).await {
            Ok(answer) => {
                let mut response = reply::answer(answer);
                response.headers_mut().extend(stages.header().map(|value| (SERVER_TIMING, value)));
                response
            }
            Err(problem) => problem_response(problem),
        },
        Ok(Reply::Replayed(answer)) => {
            let mut response = reply::answer(answer);
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            response
        }
        Ok(Reply::Running(running)) => accepted(&running),
        Err(problem) => problem_response(problem),
    }
}

async fn take(
    daemon: Arc<Daemon>,
    asker: Asker,
    (query, headers): (Option<String>, HeaderMap),
    body: Body,
) -> Result<Reply, Problem> {
    let received = daemon.clock.monotonic();
    let share = daemon.memory.bodies.take(asker.identity.who(), 0).map_err(request::short)?;
    let (body, share) = request::body((&headers, share), body).await?;
    // After the body, so that its sender hears it.
    Query::parse(query.as_deref(), &[])?;
    let raw = RawCall { body, share, peer: asker.peer, prefer: request::preferences(&headers), received };
    // In a task of its own: a client that goes away takes only this wait with it.
    let running = tokio::spawn(pipeline::submit(daemon, raw));
    running.await.unwrap_or_else(|error| Err(fault("a call's task broke down", &error)))
}

fn accepted(running: &RunningCall) -> Response<Body> {
    let mut response = reply::json(StatusCode::ACCEPTED, running);
    let headers = response.headers_mut();
    headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static("respond-async"));
    // A call id has only characters that a header and a path can hold.
    if let Ok(location) = HeaderValue::from_str(&format!("/v1/calls/{}", running.call_id)) {
        headers.insert(LOCATION, location);
    }
    response
}
