//! Requests as a client sends them, against a daemon with a launcher of cardboard.

mod restart;
mod seeing;
mod starting;
mod tampering;

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use toolcell_types::plan::KillReason;
use toolcell_types::{Answer, CallState, ControlId, Effect, Status, Verdict};
use tower_service::Service as _;

use super::*;
use crate::UnavailableControl;
use crate::calls::OWN_MAX;
use crate::cardboard::{self, PaperSigner, Seen};
use crate::identify::Peer;

const OPERATOR: u32 = 500;
const CALLER: u32 = 1000;

struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn answer(&self) -> Answer {
        assert_eq!(self.status, 200, "{}", self.json());
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The refusal's code, after a look at its form.
    fn code(&self) -> String {
        let problem = self.json();
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(problem["status"], self.status);
        assert_eq!(problem["type"], format!("urn:toolcell:problem:{}", problem["code"].as_str().unwrap()));
        assert_eq!(problem["findings"][0]["code"], problem["code"]);
        for member in ["title", "detail", "remedy"] {
            assert!(!problem[member].as_str().unwrap().is_empty(), "{member}");
        }
        problem["code"].as_str().unwrap().to_owned()
    }
}

struct World {
    daemon: Arc<Daemon>,
    seen: Arc<Seen>,
    signer: PaperSigner,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut Daemon)) -> Self {
        let (folder, signer) = (cardboard::folder(), PaperSigner::new());
        let (mut daemon, seen) = cardboard::daemon(folder.path(), signer.clone());
        change(&mut daemon);
        Self { daemon: Arc::new(daemon), seen, signer, folder }
    }

    async fn send(&self, uid: u32, request: Request<Body>) -> Reply {
        let mut request = request;
        let peer = Peer { uid, gid: uid, pid: 1, groups: Vec::new() };
        request.extensions_mut().insert(Arc::new(peer));
        let response = router(Arc::clone(&self.daemon)).call(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: head.status.as_u16(), headers: head.headers, body }
    }

    async fn get(&self, uid: u32, path: &str) -> Reply {
        self.send(uid, Request::get(path).body(Body::empty()).unwrap()).await
    }

    async fn post(&self, uid: u32, path: &str, body: &Value) -> Reply {
        self.send(uid, Request::post(path).body(Body::from(body.to_string())).unwrap()).await
    }

    async fn submit(&self, uid: u32, id: &str, what: &str) -> Reply {
        self.post(uid, "/v1/calls", &python(id, what)).await
    }

    async fn submit_async(&self, id: &str, what: &str, prefer: &str) -> Reply {
        let body = Body::from(python(id, what).to_string());
        self.send(CALLER, Request::post("/v1/calls").header("prefer", prefer).body(body).unwrap()).await
    }

    /// The answer, once it is there.
    async fn answer(&self, id: &str) -> Answer {
        for _ in 0..500 {
            let reply = self.get(CALLER, &format!("/v1/calls/{id}")).await;
            if reply.json()["state"] != "submitting" {
                return reply.answer();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the call does not end");
    }

    fn entries(&self) -> usize {
        self.daemon.log.reader.entries_after(None, 1000).unwrap().len()
    }

    fn launches(&self) -> usize {
        self.seen.launches.load(Ordering::SeqCst)
    }
}

fn python(id: &str, what: &str) -> Value {
    json!({"call_id": id, "tool": "python", "args": {"code": what}})
}

#[tokio::test]
async fn whatever_is_refused_is_refused_as_a_problem_and_changes_nothing() {
    let world = World::new();
    let call = |more: Value| {
        let mut call = python("a", "print:x");
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Body::from(call.to_string())
    };
    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    let post = |body: Body| Request::post("/v1/calls").body(body).unwrap();
    let coded = |codings: &[&str]| {
        let post = Request::post("/v1/calls");
        let post = codings.iter().fold(post, |post, coding| post.header("transfer-encoding", *coding));
        post.body(Body::from(python("a", "print:x").to_string())).unwrap()
    };
    let long = Body::from(vec![b' '; toolcell_types::BODY_MAX_BYTES + 1]);
    for (request, status, code) in [
        (get("/"), 404, "NOT_FOUND"),
        (get("/v2/calls"), 404, "NOT_FOUND"),
        (get("/v1/calls/nobody"), 404, "NOT_FOUND"),
        (get("/v1/calls/nobody/stdout"), 404, "NOT_FOUND"),
        (Request::post("/v1/calls/nobody/cancel").body(Body::empty()).unwrap(), 404, "NOT_FOUND"),
        (Request::delete("/v1/calls").body(Body::empty()).unwrap(), 405, "INVALID_REQUEST"),
        (Request::post("/healthz").body(Body::empty()).unwrap(), 405, "INVALID_REQUEST"),
        (get("/v1/calls?limit=0"), 400, "INVALID_REQUEST"),
        (get("/v1/calls?lim=1"), 400, "INVALID_REQUEST"),
        (get("/v1/tools?x=1"), 400, "INVALID_REQUEST"),
        (get("/healthz?x"), 400, "INVALID_REQUEST"),
        (get("/v1/calls/a?x=1"), 400, "INVALID_REQUEST"),
        (Request::post("/v1/calls/a/cancel?x=1").body(Body::empty()).unwrap(), 400, "INVALID_REQUEST"),
        (Request::post("/v1/shutdown?x=1").body(Body::empty()).unwrap(), 400, "INVALID_REQUEST"),
        (
            Request::post("/v1/calls?x=1").body(Body::from(python("a", "print:x").to_string())).unwrap(),
            400,
            "INVALID_REQUEST",
        ),
        (coded(&["gzip, chunked"]), 501, "INVALID_REQUEST"),
        (coded(&["gzip", "chunked"]), 501, "INVALID_REQUEST"),
        (coded(&["chunked", "chunked"]), 501, "INVALID_REQUEST"),
        (get("/v1/keys?x=1"), 400, "INVALID_REQUEST"),
        (get("/v1/receipts?after=x"), 400, "INVALID_REQUEST"),
        (get("/v1/calls/a%20b"), 400, "INVALID_REQUEST"),
        (get("/v1/calls/%ff"), 400, "INVALID_REQUEST"),
        (get("/v1/calls/a/stdout?follow=yes"), 400, "INVALID_REQUEST"),
        (post(long), 413, "INVALID_REQUEST"),
        (post(Body::empty()), 400, "INVALID_REQUEST"),
        (post(Body::from("{\"call_id\":\"a\",\"call_id\":\"a\"}")), 400, "INVALID_REQUEST"),
        (post(call(json!({"unknown": 1}))), 400, "INVALID_REQUEST"),
        (post(call(json!({"key": "k"}))), 400, "INVALID_REQUEST"),
        (post(call(json!({"ablate": ["seccomp"]}))), 403, "ABLATION_REFUSED"),
        (post(call(json!({"tool": "nothing"}))), 404, "UNKNOWN_TOOL"),
        (post(call(json!({"args": {}}))), 422, "INVALID_ARGUMENTS"),
        (post(call(json!({"limits": {"wall_ms": 86_400_000}}))), 403, "PERMISSION_DENIED"),
    ] {
        let what = format!("{} {}", request.method(), request.uri());
        let reply = world.send(OPERATOR, request).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{what}: {}", reply.json());
    }
    assert_eq!((world.entries(), world.launches()), (1, 0), "only the log's beginning is there");
}

#[tokio::test]
async fn a_call_is_answered_recorded_and_replayed_byte_for_byte() {
    let world = World::new();
    let first = world.submit(CALLER, "a", "print:6*7").await;
    let answer = first.answer();
    assert_eq!((answer.state, answer.status, answer.is_error), (CallState::Complete, Status::Ok, false));
    assert_eq!((answer.effect, &answer.verdict), (Effect::None, &Verdict::Exited { exit_code: 0 }));
    assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "6*7");
    assert_eq!((answer.controls.len(), answer.usage.stdout_bytes), (29, Some(3)));
    assert!(!first.headers.contains_key("idempotent-replayed"));

    let again = world.submit(CALLER, "a", "print:6*7").await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.body, first.body);
    assert_eq!(world.get(CALLER, "/v1/calls/a").await.body, first.body);
    assert_eq!(world.post(CALLER, "/v1/calls/a/cancel", &json!({})).await.body, first.body);
    assert_eq!((world.launches(), world.entries()), (1, 3));
    assert_eq!(world.get(CALLER, "/v1/calls/a/stdout").await.body, "6*7");
    assert_eq!(world.get(CALLER, "/v1/calls/a/stderr?follow=1").await.body, "");
}

#[tokio::test]
async fn too_much_output_is_killed_and_named() {
    let world = World::new();
    let mut call = python("a", "flood");
    call["limits"] = json!({"output_limit_bytes": 200_000, "output_keep_bytes": 1000});
    let answer = world.post(CALLER, "/v1/calls", &call).await.answer();
    assert_eq!(answer.verdict, Verdict::OutputLimit);
    // The cardboard writes on after the end, as nothing in a cell can, and that is told as well.
    let hit: Vec<&str> = answer.limits_hit.iter().map(|hit| hit.limit.as_str()).collect();
    assert_eq!(hit, ["output_read", "output_limit_bytes"]);
    assert_eq!(*world.seen.kills.lock().unwrap(), [KillReason::OutputLimit]);
    let dropped = answer.truncated.stdout.unwrap().dropped_bytes;
    assert_eq!(Some(dropped + 1000), answer.usage.stdout_bytes);
}

#[tokio::test]
async fn what_caller_or_operator_can_mend_is_refused_before_anything_is_promised() {
    let world = World::new();
    let wanted = [
        ("mount", 403, "PERMISSION_DENIED"),
        ("nowhere", 400, "INVALID_REQUEST"),
        ("control", 503, "CONTROL_UNAVAILABLE"),
    ];
    for (what, status, code) in wanted {
        let refused = world.submit(CALLER, what, what).await;
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{}", refused.json());
        assert_eq!(world.get(CALLER, &format!("/v1/calls/{what}")).await.status, 404);
    }
    assert_eq!((world.launches(), world.entries()), (3, 1), "only the log's beginning is there");
    // The same name is free for a call that can be had.
    assert_eq!(world.submit(CALLER, "mount", "print:x").await.answer().state, CallState::Complete);
}

#[tokio::test]
async fn a_set_up_that_fails_ends_as_an_outcome_that_names_the_stage() {
    let world = World::new();
    let answer = world.submit(CALLER, "a", "broken").await.answer();
    let verdict = Verdict::StartFailed { stage: "mounts".to_owned(), errno: "ENOMEM".to_owned() };
    assert_eq!((answer.verdict, answer.state, answer.effect), (verdict, CallState::Failed, Effect::None));
    assert!(answer.controls.is_empty() && answer.error.is_some());
    assert_eq!(world.submit(CALLER, "early", "early").await.answer().verdict, Verdict::Cancelled);
}

#[tokio::test]
async fn the_intent_of_a_cell_that_is_being_set_up_is_signed_and_whatever_comes_of_it_is_its_outcome() {
    let world = World::new();
    let answer = world.submit(CALLER, "fine", "begun:print:x").await.answer();
    assert_eq!((answer.state, answer.effect), (CallState::Complete, Effect::None));
    assert_eq!(world.entries(), 3, "the log's beginning, intent, outcome");
    let refused = world.submit(CALLER, "control", "begun:control").await.answer();
    let verdict = Verdict::StartFailed { stage: "controls".to_owned(), errno: "EOPNOTSUPP".to_owned() };
    assert_eq!((refused.verdict, refused.state, refused.effect), (verdict, CallState::Failed, Effect::None));
    assert!(refused.controls.is_empty() && refused.error.is_some());
    assert_eq!(world.submit(CALLER, "early", "begun:early").await.answer().verdict, Verdict::Cancelled);
    assert_eq!(world.entries(), 7);
}

#[tokio::test]
async fn a_cell_that_is_still_being_set_up_can_be_cancelled() {
    let world = World::new();
    let accepted = world.submit_async("slow", "begun:slow", "respond-async").await;
    assert_eq!(accepted.status, 202);
    let cancelled = world.post(CALLER, "/v1/calls/slow/cancel", &json!({})).await;
    assert!(cancelled.status < 300, "{}", cancelled.json());
    assert_eq!(world.answer("slow").await.verdict, Verdict::Cancelled);
}
