//! Requests as a client sends them, against a daemon with a launcher of cardboard.

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
use crate::calls::LIVE_MAX;
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
async fn labels_deadline_and_salt_do_not_make_another_request_but_arguments_do() {
    let world = World::new();
    let first = world.submit(CALLER, "a", "print:x").await;
    let mut same = python("a", "print:x");
    let more = json!({"labels": {"l": "v"}, "deadline_ms": 5000, "salt": "s"});
    same.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(world.post(CALLER, "/v1/calls", &same).await.body, first.body);
    let other = world.submit(CALLER, "a", "print:y").await;
    assert_eq!((other.status, other.code().as_str()), (422, "KEY_PAYLOAD_MISMATCH"));
    assert_eq!(world.launches(), 1);
}

#[tokio::test]
async fn a_failed_call_starts_no_second_attempt() {
    let world = World::new();
    let answer = world.submit(CALLER, "a", "exit:3").await.answer();
    assert_eq!((answer.state, answer.is_error, answer.retryable), (CallState::Failed, true, true));
    assert_eq!(answer.error.unwrap().code, "exited");
    assert_eq!(world.submit(CALLER, "a", "exit:3").await.code(), "BUDGET_EXHAUSTED");
    assert_eq!(world.submit(CALLER, "b", "exit:75").await.answer().status, Status::Transient);
    assert_eq!(world.launches(), 2);
}

#[tokio::test]
async fn what_nobody_saw_gone_is_unknown_and_stays_so() {
    let world = World::new();
    let answer = world.submit(CALLER, "a", "messy").await.answer();
    assert_eq!((answer.state, answer.status, answer.effect), (CallState::Unknown, Status::Unknown, Effect::Unknown));
    let again = world.submit(CALLER, "a", "messy").await;
    assert_eq!((again.code().as_str(), &again.json()["live"]), ("OUTCOME_UNKNOWN", &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_four_submissions_of_one_call_one_starts() {
    let world = Arc::new(World::new());
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.submit(CALLER, "a", "hang").await })
        })
        .collect();
    while world.daemon.calls.live_count() == 0 || world.launches() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut refused = 0;
    let mut left = Vec::new();
    for task in tasks {
        left.push(task);
    }
    // All but one are refused while the one runs.
    while refused < 63 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let mut waiting = Vec::new();
        for task in left {
            if !task.is_finished() {
                waiting.push(task);
                continue;
            }
            let reply = task.await.unwrap();
            assert_eq!((reply.code().as_str(), &reply.json()["live"]), ("OUTCOME_UNKNOWN", &json!(true)));
            refused += 1;
        }
        left = waiting;
    }
    let mismatch = world.submit(CALLER, "a", "print:other").await;
    assert_eq!(mismatch.code(), "KEY_PAYLOAD_MISMATCH");
    assert_eq!(world.post(CALLER, "/v1/calls/a/cancel", &json!({})).await.status, 202);
    assert_eq!(left.pop().unwrap().await.unwrap().answer().verdict, Verdict::Cancelled);
    assert_eq!(world.launches(), 1);
}

#[tokio::test]
async fn one_call_more_than_there_are_places_is_told_to_come_again() {
    let world = World::new();
    for number in 0..LIVE_MAX {
        assert_eq!(world.submit_async(&number.to_string(), "hang", "respond-async").await.status, 202);
    }
    let full = world.submit(CALLER, "more", "print:x").await;
    assert_eq!(
        (full.status, full.code().as_str(), &full.headers["retry-after"]),
        (503, "QUEUE_FULL", &"1".parse().unwrap())
    );
    assert_eq!(full.json()["retryable"], true);
    world.post(CALLER, "/v1/calls/0/cancel", &json!({})).await;
    world.answer("0").await;
    assert_eq!(world.submit(CALLER, "more", "print:x").await.answer().state, CallState::Complete);
}

#[tokio::test]
async fn an_asynchronous_call_shows_its_intent_then_its_answer() {
    let world = World::new();
    let reply = world.submit_async("a", "hang", "respond-async").await;
    assert_eq!((reply.status, &reply.headers["preference-applied"]), (202, &"respond-async".parse().unwrap()));
    assert_eq!(reply.headers["location"], "/v1/calls/a");
    let running = reply.json();
    assert_eq!((&running["state"], &running["attempt"]), (&json!("submitting"), &json!(1)));
    assert_eq!(world.get(CALLER, "/v1/calls/a").await.json(), running);
    assert_eq!(world.get(OPERATOR, "/healthz").await.json()["live_calls"], 1);
    let cancelled = world.post(CALLER, "/v1/calls/a/cancel", &json!({})).await;
    assert_eq!((cancelled.status, cancelled.json()), (202, running));
    let answer = world.answer("a").await;
    assert_eq!((answer.verdict, answer.effect, answer.state), (Verdict::Cancelled, Effect::None, CallState::Failed));
    assert_eq!(*world.seen.kills.lock().unwrap(), [KillReason::Cancelled]);
}

#[tokio::test]
async fn too_much_output_is_killed_and_named() {
    let world = World::new();
    let mut call = python("a", "flood");
    call["limits"] = json!({"output_limit_bytes": 200_000, "output_keep_bytes": 1000});
    let answer = world.post(CALLER, "/v1/calls", &call).await.answer();
    assert_eq!(answer.verdict, Verdict::OutputLimit);
    assert_eq!(answer.limits_hit[0].limit, "output_limit_bytes");
    assert_eq!(*world.seen.kills.lock().unwrap(), [KillReason::OutputLimit]);
    let dropped = answer.truncated.stdout.unwrap().dropped_bytes;
    assert_eq!(Some(dropped + 1000), answer.usage.stdout_bytes);
}

#[tokio::test]
async fn a_follower_that_was_announced_gets_every_byte_also_after_the_end() {
    let world = World::new();
    let reply = world.submit_async("a", "print:hello", "respond-async, follow").await;
    assert_eq!(reply.status, 202);
    assert_eq!(world.answer("a").await.state, CallState::Complete);
    assert_eq!(world.get(CALLER, "/v1/calls/a/stdout?follow=1").await.body, "hello");
    assert_eq!(world.get(CALLER, "/v1/calls/a/stderr?follow=1").await.body, "");
}

#[tokio::test]
async fn what_the_launcher_refuses_ends_as_an_outcome_that_names_the_stage() {
    let world = World::new();
    for (what, stage, errno) in [("mount", "mounts", "EACCES"), ("control", "controls", "EOPNOTSUPP")] {
        let answer = world.submit(CALLER, what, what).await.answer();
        let verdict = Verdict::StartFailed { stage: stage.to_owned(), errno: errno.to_owned() };
        assert_eq!((answer.verdict, answer.state, answer.effect), (verdict, CallState::Failed, Effect::None));
        assert!(answer.controls.is_empty() && answer.error.is_some());
    }
    assert_eq!(world.submit(CALLER, "early", "early").await.answer().verdict, Verdict::Cancelled);
}

#[tokio::test]
async fn a_deadline_shortens_the_wall_clock_of_the_plan_and_one_that_is_over_starts_nothing() {
    let world = World::new();
    let mut call = python("a", "print:x");
    call["deadline_ms"] = json!(3000);
    world.post(CALLER, "/v1/calls", &call).await.answer();
    let wall_ms = world.seen.limits.lock().unwrap().unwrap().wall_ms;
    assert!((1..=3000).contains(&wall_ms), "{wall_ms}");
    call["call_id"] = json!("b");
    call["deadline_ms"] = json!(3_000_000);
    world.post(CALLER, "/v1/calls", &call).await.answer();
    assert_eq!(world.seen.limits.lock().unwrap().unwrap().wall_ms, 10_000);
}

#[tokio::test]
async fn a_control_that_is_known_to_be_missing_refuses_the_call_unless_it_was_accepted() {
    let missing = UnavailableControl {
        id: ControlId::CgroupMemory,
        detail: "no memory controller".to_owned(),
        remedy: "mount it".to_owned(),
    };
    let world = World::with(|daemon| daemon.unavailable = vec![missing.clone()]);
    let refused = world.submit(CALLER, "a", "print:x").await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "CONTROL_UNAVAILABLE"));
    assert_eq!((&refused.json()["remedy"], world.entries()), (&json!("mount it"), 1));
    let world = World::with(|daemon| {
        daemon.unavailable = vec![missing];
        daemon.accept_unavailable = vec![ControlId::CgroupMemory];
    });
    assert_eq!(world.submit(CALLER, "a", "print:x").await.answer().state, CallState::Complete);
}

#[tokio::test]
async fn callers_see_their_own_calls_and_operators_see_all() {
    let world = World::new();
    world.submit(CALLER, "a", "print:mine").await.answer();
    for path in ["/v1/calls/a", "/v1/calls/a/stdout"] {
        assert_eq!(world.get(CALLER + 1, path).await.code(), "NOT_FOUND");
        assert_eq!(world.get(OPERATOR, path).await.status, 200);
    }
    assert_eq!(world.post(CALLER + 1, "/v1/calls/a/cancel", &json!({})).await.code(), "NOT_FOUND");
    let other = world.submit(CALLER + 1, "a", "print:another").await.answer();
    assert_eq!(other.state, CallState::Complete, "names of calls are each user's own");
    let listed = async |uid| world.get(uid, "/v1/calls").await.json()["calls"].as_array().unwrap().len();
    assert_eq!((listed(CALLER).await, listed(CALLER + 1).await, listed(OPERATOR).await), (1, 1, 2));
    assert_eq!(world.get(CALLER, "/v1/receipts").await.code(), "ROLE_DENIED");
    assert_eq!(world.get(CALLER, "/v1/keys").await.status, 200);
    let tools = async |uid| world.get(uid, "/v1/tools").await.json()["tools"].as_array().unwrap().len();
    assert_eq!((tools(CALLER).await, tools(OPERATOR).await), (1, 2));
}

#[tokio::test]
async fn receipts_come_in_order_and_go_on_after_the_last() {
    let world = World::new();
    world.submit(CALLER, "a", "print:x").await.answer();
    let indexes = |page: &Value| -> Vec<u64> {
        page["receipts"].as_array().unwrap().iter().map(|one| one["index"].as_u64().unwrap()).collect()
    };
    let page = world.get(OPERATOR, "/v1/receipts?limit=2").await.json();
    assert_eq!((indexes(&page), &page["last"]), (vec![0, 1], &json!(1)));
    let page = world.get(OPERATOR, "/v1/receipts?after=1").await.json();
    assert_eq!((indexes(&page), &page["last"]), (vec![2], &json!(2)));
    let page = world.get(OPERATOR, "/v1/receipts?after=2").await.json();
    assert_eq!((indexes(&page), &page["last"]), (vec![], &json!(null)));
}

#[tokio::test]
async fn a_client_that_leaves_does_not_end_its_call() {
    let world = World::new();
    let leaving = tokio::time::timeout(Duration::from_millis(100), world.submit(CALLER, "a", "hang"));
    assert!(leaving.await.is_err());
    assert_eq!(world.get(CALLER, "/v1/calls/a").await.json()["state"], "submitting");
    world.post(CALLER, "/v1/calls/a/cancel", &json!({})).await;
    assert_eq!(world.answer("a").await.verdict, Verdict::Cancelled);
}

#[tokio::test]
async fn an_ending_daemon_takes_no_call() {
    let world = World::new();
    world.daemon.calls.end();
    assert_eq!(world.submit(CALLER, "a", "print:x").await.code(), "QUEUE_FULL");
    assert_eq!(world.entries(), 1);
}

#[tokio::test]
async fn an_operator_ends_an_idle_daemon_and_nobody_ends_a_busy_one() {
    let world = World::new();
    let end = async |uid| world.post(uid, "/v1/shutdown", &json!({})).await;
    assert_eq!(end(CALLER).await.code(), "ROLE_DENIED");
    assert_eq!(world.submit_async("a", "hang", "respond-async").await.status, 202);
    assert_eq!(end(OPERATOR).await.code(), "QUEUE_FULL");
    world.post(CALLER, "/v1/calls/a/cancel", &json!({})).await;
    world.answer("a").await;
    assert_eq!(end(OPERATOR).await.status, 202);
    assert!(world.daemon.calls.stop().is_cancelled());
    assert_eq!(world.submit(CALLER, "b", "print:x").await.code(), "QUEUE_FULL");
}

#[tokio::test]
async fn a_call_of_an_earlier_life_is_settled_as_lost() {
    for (leftovers_gone, state, effect) in
        [(true, CallState::Failed, Effect::None), (false, CallState::Unknown, Effect::Unknown)]
    {
        let world = World::new();
        assert_eq!(world.submit_async("a", "hang", "respond-async").await.status, 202);
        while world.launches() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The second daemon opens what the first one left; the first one writes nothing any more.
        let (daemon, seen) = cardboard::daemon(world.folder.path(), world.signer.clone());
        crate::recovery::settle(&daemon, leftovers_gone).await.unwrap();
        let next = World { daemon: Arc::new(daemon), seen, signer: PaperSigner::new(), folder: cardboard::folder() };
        let answer = next.get(CALLER, "/v1/calls/a").await.answer();
        assert_eq!((answer.verdict, answer.state, answer.effect), (Verdict::Lost, state, effect));
        let again = next.submit(CALLER, "a", "hang").await.code();
        assert_eq!(again, if leftovers_gone { "BUDGET_EXHAUSTED" } else { "OUTCOME_UNKNOWN" });
        assert_eq!(next.launches(), 0);
    }
}

#[tokio::test]
async fn an_outcome_that_was_signed_and_not_committed_is_there_after_the_next_start() {
    let world = World::new();
    assert_eq!(world.submit_async("a", "hang", "respond-async").await.status, 202);
    // The ledger as it is now; the signer goes on.
    let folder = cardboard::folder();
    for name in ["ledger.db", "ledger.db-wal"] {
        std::fs::copy(world.folder.path().join(name), folder.path().join(name)).unwrap();
    }
    world.post(CALLER, "/v1/calls/a/cancel", &json!({})).await;
    world.answer("a").await;
    let answer = world.get(CALLER, "/v1/calls/a").await.body;
    let (daemon, seen) = cardboard::daemon(folder.path(), world.signer.clone());
    crate::recovery::settle(&daemon, true).await.unwrap();
    let next = World { daemon: Arc::new(daemon), seen, signer: world.signer.clone(), folder };
    assert_eq!(next.get(CALLER, "/v1/calls/a").await.body, answer, "made again, byte for byte");
    assert_eq!(next.entries(), 3);
}

#[tokio::test]
async fn an_invalid_ledger_leaves_receipts_keys_and_health_and_nothing_else() {
    let world = World::new();
    world.submit(CALLER, "a", "print:x").await.answer();
    let forgetful = PaperSigner::new();
    let (daemon, seen) = cardboard::daemon(world.folder.path(), forgetful.clone());
    let next = World { daemon: Arc::new(daemon), seen, signer: forgetful, folder: cardboard::folder() };
    for reply in [
        next.submit(CALLER, "b", "print:x").await,
        next.submit(CALLER, "a", "print:x").await,
        next.get(CALLER, "/v1/calls/a").await,
        next.get(CALLER, "/v1/calls").await,
        next.get(CALLER, "/v1/calls/a/stdout").await,
        next.get(CALLER, "/v1/tools").await,
        next.post(CALLER, "/v1/calls/a/cancel", &json!({})).await,
    ] {
        assert_eq!((reply.status, reply.code().as_str()), (500, "LEDGER_INVALID"));
    }
    assert_eq!(next.get(OPERATOR, "/healthz").await.json()["status"], "ledger_invalid");
    assert_eq!(next.get(OPERATOR, "/v1/receipts").await.json()["receipts"].as_array().unwrap().len(), 3);
    assert_eq!(next.get(OPERATOR, "/v1/keys").await.status, 200);
    assert_eq!(next.launches(), 0);
}
