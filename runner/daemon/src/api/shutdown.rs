//! `POST /v1/shutdown`: an idle daemon ends, so that one of another build or policy can take its place.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use toolcell_policy::Role;
use toolcell_types::{ErrorCode, Problem};

use super::pages::health_of;
use super::reply::{json, problem_response};
use super::request::{Asker, NoQuery};
use crate::daemon::Daemon;

/// For operators. Whether the daemon is idle is decided in the moment in which it stops to take calls.
pub(super) async fn shutdown(State(daemon): State<Arc<Daemon>>, asker: Asker, NoQuery: NoQuery) -> Response<Body> {
    if asker.identity.principal().role != Role::Operator {
        let detail = "only an operator may end the daemon";
        return problem_response(Problem::new(ErrorCode::RoleDenied, detail, "ask whoever started it"));
    }
    match daemon.calls.end_if_idle() {
        Ok(()) => {
            tracing::info!(uid = asker.peer.uid, "an operator asked the idle daemon to end");
            json(StatusCode::ACCEPTED, &health_of(&daemon))
        }
        Err(busy) => {
            let detail = format!("calls are running: {busy}");
            problem_response(Problem::new(ErrorCode::QueueFull, detail, "ask again once they are over"))
        }
    }
}
