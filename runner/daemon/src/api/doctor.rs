//! `GET /v1/doctor`: what can be enforced on this machine, for operators.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use toolcell_policy::Role;

use super::reply::{json, problem_response};
use super::request::{Asker, NoQuery};
use crate::daemon::Daemon;
use crate::survey;

/// Also with an invalid ledger: nothing of a survey is written.
pub(super) async fn doctor(State(daemon): State<Arc<Daemon>>, asker: Asker, NoQuery: NoQuery) -> Response<Body> {
    let report = async {
        survey::may_ask(asker.identity.principal().role == Role::Operator)?;
        survey::report(&daemon).await
    };
    match report.await {
        Ok(report) => json(StatusCode::OK, report.as_ref()),
        Err(problem) => problem_response(problem),
    }
}
