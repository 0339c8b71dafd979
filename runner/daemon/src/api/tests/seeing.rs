//! Who sees what: calls, receipts, tools, output.

use super::*;

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
async fn a_follower_that_was_announced_gets_every_byte_also_after_the_end() {
    let world = World::new();
    let reply = world.submit_async("a", "print:hello", "respond-async, follow").await;
    assert_eq!(reply.status, 202);
    assert_eq!(world.answer("a").await.state, CallState::Complete);
    assert_eq!(world.get(CALLER, "/v1/calls/a/stdout?follow=1").await.body, "hello");
    assert_eq!(world.get(CALLER, "/v1/calls/a/stderr?follow=1").await.body, "");
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
