//! Lists and facts: calls, tools, receipts, keys, health.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{Response, StatusCode};
use toolcell_ledger::{Attempt, Entry};
use toolcell_receipts::{UnixMicros, dsse};
use toolcell_types::{
    CallSummary, CallsPage, ErrorCode, Health, KeyInfo, KeysPage, Problem, ReceiptItem, ReceiptsPage, ToolsPage,
};

use super::reply::{json, problem_response};
use super::request::{Asker, NoQuery, Query};
use crate::daemon::Daemon;

/// Most lines of one page, and how many there are if nothing is said.
const PAGE_MAX: u64 = 1000;
const PAGE: u64 = 100;
/// Receipts are up to 80 KB each.
const RECEIPTS_MAX: u64 = 256;

/// `GET /v1/calls?limit=`: newest first; for an operator those of everybody.
pub(super) async fn calls(
    State(daemon): State<Arc<Daemon>>,
    asker: Asker,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    let page = async {
        daemon.ledger()?;
        let limit = Query::parse(query.as_deref(), &["limit"])?.number("limit", 1, PAGE_MAX)?.unwrap_or(PAGE);
        let tenant = (!asker.identity.sees_everything()).then(|| asker.identity.tenant().to_owned());
        let attempts = daemon.read(move |reader| reader.newest(tenant.as_deref(), short(limit))).await?;
        Ok(CallsPage { calls: attempts.into_iter().map(summary).collect() })
    };
    page_response(page.await)
}

fn summary(attempt: Attempt) -> CallSummary {
    CallSummary {
        call_id: attempt.call_id,
        attempt: attempt.key.attempt,
        tool: attempt.tool,
        state: attempt.state,
        submitted_on: UnixMicros(attempt.submitted_us).to_rfc3339(),
        intent_index: attempt.intent_index,
        outcome_index: attempt.outcome_index,
    }
}

/// `GET /v1/tools`: those that the asker sees.
pub(super) async fn tools(
    State(daemon): State<Arc<Daemon>>,
    asker: Asker,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    let page = Query::parse(query.as_deref(), &[]).and_then(|_nothing| {
        daemon.ledger()?;
        let tools = daemon.policy.tools_for(asker.identity.principal());
        Ok(ToolsPage { tools, policy: daemon.policy.digest() })
    });
    page_response(page)
}

/// `GET /v1/receipts?after=&limit=`: the log in order and without gaps, which is everybody's, so that a caller gets his
/// receipts with his answers instead.
pub(super) async fn receipts(
    State(daemon): State<Arc<Daemon>>,
    asker: Asker,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    let page = async {
        if !asker.identity.sees_everything() {
            let detail = "the log holds the receipts of everybody; it is for operators";
            let remedy = "your own receipts are in your answers: GET /v1/calls/{call_id}";
            return Err(Problem::new(ErrorCode::RoleDenied, detail, remedy));
        }
        let query = Query::parse(query.as_deref(), &["after", "limit"])?;
        let after = query.number("after", 0, u64::from(u32::MAX))?;
        let limit = query.number("limit", 1, RECEIPTS_MAX)?.unwrap_or(PAGE);
        let entries = daemon.read(move |reader| reader.entries_after(after, short(limit))).await?;
        let last = entries.last().map(|entry| entry.index);
        Ok(ReceiptsPage { receipts: entries.into_iter().map(receipt).collect(), last })
    };
    page_response(page.await)
}

fn receipt(entry: Entry) -> ReceiptItem {
    let envelope = dsse::envelope(&entry.payload, &entry.signature, &entry.keyid);
    ReceiptItem { index: entry.index, leaf: entry.leaf, envelope }
}

/// `GET /v1/keys`: what receipts verify under.
pub(super) async fn keys(State(daemon): State<Arc<Daemon>>, RawQuery(query): RawQuery) -> Response<Body> {
    let signer = &daemon.log.signer;
    let key = KeyInfo {
        keyid: signer.keyid.clone(),
        pem: signer.public_pem.clone(),
        purpose: "receipt".to_owned(),
        enrolled: false,
    };
    page_response(Query::parse(query.as_deref(), &[]).map(|_nothing| KeysPage { keys: vec![key] }))
}

/// `GET /healthz`: for everybody who may connect, also with an invalid ledger.
pub(super) async fn health(State(daemon): State<Arc<Daemon>>, NoQuery: NoQuery) -> Response<Body> {
    json(StatusCode::OK, &health_of(&daemon))
}

/// How the daemon is.
pub(super) fn health_of(daemon: &Daemon) -> Health {
    let status = if daemon.is_ledger_valid() { "ok" } else { "ledger_invalid" };
    Health {
        status: status.to_owned(),
        version: daemon.about.version.clone(),
        build: daemon.about.build.clone(),
        instance: daemon.executor.instance.clone(),
        live_calls: u64::try_from(daemon.calls.live_count()).unwrap_or(u64::MAX),
        ends_when_idle: daemon.about.idle_exit.is_some(),
        ablation: daemon.executor.experiment.is_some(),
        accept_unavailable: daemon.accept_unavailable.clone(),
        policy: daemon.policy.digest(),
    }
}

fn page_response(page: Result<impl serde::Serialize, Problem>) -> Response<Body> {
    match page {
        Ok(page) => json(StatusCode::OK, &page),
        Err(problem) => problem_response(problem),
    }
}

/// Limits of pages are far below 2^32.
fn short(limit: u64) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}
