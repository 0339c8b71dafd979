//! HTTP/1.1 on the Unix socket: which path does what.
//!
//! Guarantees: every reply to a request whose head is HTTP and that is no success is `application/problem+json`, unknown
//! paths and methods included; bodies and queries are read within bounds and without unknown members, on every path;
//! what belongs to somebody else answers as if it did
//! not exist. With an invalid ledger only receipts, keys and health are served. Does not: decide about calls, see the
//! pipeline.

mod calls;
mod doctor;
mod pages;
mod reply;
mod request;
mod shutdown;
mod streams;
mod submit;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use toolcell_types::{ErrorCode, Problem};

use crate::daemon::Daemon;
pub(crate) use reply::problem_response;

/// All paths.
pub(crate) fn router(daemon: Arc<Daemon>) -> Router {
    Router::new()
        .route("/v1/calls", post(submit::submit).get(pages::calls))
        .route("/v1/calls/{call_id}", get(calls::show))
        .route("/v1/calls/{call_id}/cancel", post(calls::cancel))
        .route("/v1/calls/{call_id}/stdout", get(streams::stdout))
        .route("/v1/calls/{call_id}/stderr", get(streams::stderr))
        .route("/v1/tools", get(pages::tools))
        .route("/v1/receipts", get(pages::receipts))
        .route("/v1/keys", get(pages::keys))
        .route("/v1/doctor", get(doctor::doctor))
        .route("/v1/shutdown", post(shutdown::shutdown))
        .route("/healthz", get(pages::health))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(axum::middleware::from_fn(request::known_codings))
        .with_state(daemon)
}

async fn unknown_path(uri: Uri) -> Response {
    let detail = format!("there is no path {:?}", uri.path());
    problem_response(Problem::new(ErrorCode::NotFound, detail, "see the paths in the documentation of the API"))
}

async fn unknown_method(method: Method, uri: Uri) -> Response {
    let detail = format!("{method} is not for {:?}", uri.path());
    let mut problem = Problem::new(ErrorCode::InvalidRequest, detail, "see the header Allow for what is");
    problem.status = 405;
    problem_response(problem)
}
