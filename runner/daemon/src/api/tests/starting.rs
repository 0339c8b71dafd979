//! What may start: names, places, deadlines, controls.

use super::*;
use crate::shares::{Bounds, Shares};

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
    // 200 if its end was seen before the reply was made.
    assert!(matches!(world.post(CALLER, "/v1/calls/a/cancel", &json!({})).await.status, 200 | 202));
    assert_eq!(left.pop().unwrap().await.unwrap().answer().verdict, Verdict::Cancelled);
    assert_eq!(world.launches(), 1);
}

#[tokio::test]
async fn one_call_more_than_there_are_places_is_told_to_come_again() {
    let world = World::new();
    for number in 0..OWN_MAX {
        assert_eq!(world.submit_async(&number.to_string(), "hang", "respond-async").await.status, 202);
    }
    let full = world.submit(CALLER, "more", "print:x").await;
    assert_eq!(
        (full.status, full.code().as_str(), &full.headers["retry-after"]),
        (503, "QUEUE_FULL", &"1".parse().unwrap())
    );
    assert_eq!(full.json()["retryable"], true);
    assert!(full.json()["detail"].as_str().unwrap().contains("16 of your calls"), "{}", full.json());
    // Others are not in his way, and he is not in theirs.
    for somebody in [OPERATOR, CALLER + 1] {
        assert_eq!(world.submit(somebody, "more", "print:x").await.answer().state, CallState::Complete);
    }
    world.post(CALLER, "/v1/calls/0/cancel", &json!({})).await;
    world.answer("0").await;
    assert_eq!(world.submit(CALLER, "more", "print:x").await.answer().state, CallState::Complete);
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
    let remedy = refused.json()["remedy"].as_str().unwrap().to_owned();
    assert!(remedy.starts_with("mount it; or ") && remedy.ends_with(" --accept-unavailable cgroup.memory"), "{remedy}");
    assert_eq!(world.entries(), 1);
    let world = World::with(|daemon| {
        daemon.unavailable = vec![missing];
        daemon.accept_unavailable = vec![ControlId::CgroupMemory];
    });
    assert_eq!(world.submit(CALLER, "a", "print:x").await.answer().state, CallState::Complete);
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
async fn answers_that_nobody_takes_are_bounded_and_what_is_taken_makes_room() {
    let bounds = Bounds { all: 1 << 20, per_user: 10_000, for_operators: 0 };
    let world = World::with(|daemon| daemon.memory.answers = Shares::new(bounds));
    let words = format!("print:{}", "x".repeat(20_000));
    // A reply is held here as a connection holds it that is not read.
    let first = world.submit(CALLER, "a", &words).await;
    tokio::time::pause();
    for path in ["/v1/calls/a", "/v1/calls/a/stdout"] {
        let refused = world.get(CALLER, path).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "QUEUE_FULL"), "{path}");
        assert!(refused.headers.contains_key("retry-after"));
    }
    assert_eq!(world.get(OPERATOR, "/v1/calls/a").await.status, 200);
    drop(first);
    assert_eq!(world.get(CALLER, "/v1/calls/a").await.status, 200);
    assert_eq!(world.get(CALLER, "/v1/calls/a/stdout").await.status, 200);
}
