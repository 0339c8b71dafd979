//! Replies: JSON, or a problem.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use serde::Serialize;
use toolcell_types::{ErrorCode, Problem};

use crate::daemon::fault;

/// Set on a reply that was given before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Seconds after which a full daemon may have room again.
const RETRY_AFTER_SECONDS: &str = "1";

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// A refusal. Its HTTP status is the one that its body names.
pub(crate) fn problem_response(problem: Problem) -> Response<Body> {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = serde_json::to_vec(&problem).unwrap_or_else(|error| {
        tracing::error!(%error, "a problem could not be encoded");
        Vec::new()
    });
    let mut response = with_type(status, PROBLEM, Body::from(body));
    if problem.code == ErrorCode::QueueFull {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
    }
    response
}

/// A value as JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(body) => with_type(status, JSON, Body::from(body)),
        Err(error) => problem_response(fault("a reply could not be encoded", &error)),
    }
}

/// An answer as it is stored.
pub(super) fn answer(body: Bytes) -> Response<Body> {
    with_type(StatusCode::OK, JSON, Body::from(body))
}

/// Output as it came.
pub(super) fn bytes(body: Body) -> Response<Body> {
    with_type(StatusCode::OK, BYTES, body)
}

fn with_type(status: StatusCode, content_type: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
