//! The same call again.

use serde_json::json;
use toolcell_tests::{CellWatch, Instance, Need, Request, Response, Running, needs};
use toolcell_types::{Answer, ErrorCode, Verdict};

fn is_replay(response: &Response) -> bool {
    response.head.header("idempotent-replayed") == Some("true")
}

#[test]
fn a_complete_call_replays_its_answer_byte_for_byte_and_runs_once() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut cells = CellWatch::on(&instance);
    let request = Request::shell("cat /proc/sys/kernel/random/uuid");
    let first = instance.post(&request);
    let entries = instance.receipts().len();
    assert!(!is_replay(&first) && first.status() == 200);
    for _ in 0..3 {
        let again = instance.post(&request);
        assert!(is_replay(&again), "{:?}", again.head);
        assert_eq!(again.body, first.body);
    }
    assert_eq!(instance.get(&format!("/v1/calls/{}", request.call_id())).body, first.body);
    assert_eq!((cells.cells(), instance.receipts().len()), (1, entries));
    // The control: another id runs it again, with another random text.
    let other = instance.call(&request.clone().id(&toolcell_tests::fresh_id()));
    assert_ne!(other.stdout, first.answer().stdout);
    assert_eq!(cells.cells(), 2);
}

#[test]
fn replays_survive_the_next_start() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::shell("cat /proc/sys/kernel/random/uuid");
    let first = instance.post(&request);
    let instance = instance.stop().start();
    let again = instance.post(&request);
    assert!(is_replay(&again));
    assert_eq!(again.body, first.body);
}

#[test]
fn members_that_are_not_part_of_the_request_do_not_make_it_another() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::shell("true").with("labels", json!({ "a": "b" })).with("salt", json!("s"));
    let first = instance.post(&request);
    let other = request.with("labels", json!({})).with("salt", json!("t")).with("deadline_ms", json!(30_000));
    let again = instance.post(&other);
    assert!(is_replay(&again), "{}", again.text());
    assert_eq!(again.body, first.body);
}

#[test]
fn another_request_under_a_known_id_is_a_mismatch() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::shell("true");
    assert_eq!(instance.call(&request).verdict, Verdict::Exited { exit_code: 0 });
    let mut cells = CellWatch::on(&instance);
    let entries = instance.receipts().len();
    for other in [
        Request::shell("false").id(&request.call_id()),
        request.clone().limits(json!({ "wall_ms": 9999 })),
        request.clone().with("env", json!({ "A": "1" })),
        request.clone().with("stdin", json!("x")),
        Request::tool("python", json!({ "code": "1" })).id(&request.call_id()),
    ] {
        drop(instance.post(&other).problem(ErrorCode::KeyPayloadMismatch));
    }
    assert_eq!((cells.cells(), instance.receipts().len()), (0, entries), "a refusal changes no state");
}

#[test]
fn a_live_call_is_outcome_unknown_and_a_different_one_still_a_mismatch() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::program("waits", &[]);
    let running = Running::until_up(&instance, &request);
    let problem = instance.post(&request).problem(ErrorCode::OutcomeUnknown);
    assert_eq!(problem.live, Some(true));
    drop(instance.post(&Request::shell("true").id(&request.call_id())).problem(ErrorCode::KeyPayloadMismatch));
    assert_eq!(running.cancel().status() / 100, 2);
    let answer = running.answer();
    assert_eq!(answer.verdict, Verdict::Cancelled);
    let entries = instance.receipts().len();
    drop(instance.post(&request).problem(ErrorCode::BudgetExhausted));
    assert_eq!(instance.receipts().len(), entries, "no second attempt in this version");
    assert_eq!(running.answer(), answer);
}

#[test]
fn a_failed_call_stays_failed_and_its_answer_can_be_read() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut cells = CellWatch::on(&instance);
    let request = Request::shell("exit 4");
    let first = instance.post(&request);
    drop(instance.post(&request).problem(ErrorCode::BudgetExhausted));
    assert_eq!(instance.get(&format!("/v1/calls/{}", request.call_id())).body, first.body);
    assert_eq!((cells.cells(), instance.receipts().len()), (1, 3));
}

#[test]
fn sixty_four_submissions_at_once_run_once() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut cells = CellWatch::on(&instance);
    let entries = instance.receipts().len();
    let request = Request::shell("cat /proc/sys/kernel/random/uuid; sleep 0.3");
    let barrier = std::sync::Barrier::new(64);
    let responses: Vec<Response> = std::thread::scope(|scope| {
        let submit = || {
            let mut connection = instance.connect();
            barrier.wait();
            connection.ask("POST", "/v1/calls", &[], &request.bytes()).unwrap()
        };
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(submit)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (ran, rest): (Vec<_>, Vec<_>) = responses.into_iter().partition(|r| r.status() == 200 && !is_replay(r));
    assert_eq!(ran.len(), 1, "one of them ran it");
    for response in rest {
        if response.status() == 200 {
            assert_eq!(response.body, ran[0].body);
        } else {
            assert_eq!(response.problem(ErrorCode::OutcomeUnknown).live, Some(true));
        }
    }
    assert_eq!((cells.cells(), instance.receipts().len()), (1, entries + 2), "one cell, one intent, one outcome");
}

#[test]
fn a_controller_that_hangs_up_finds_the_answer_later() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::shell("sleep 0.3; echo late");
    let mut connection = instance.connect();
    connection.send("POST", "/v1/calls", &[], &request.bytes()).unwrap();
    toolcell_tests::eventually("the call to be known", || {
        (instance.get(&format!("/v1/calls/{}", request.call_id())).status() != 404).then_some(())
    });
    drop(connection);
    let answer: Answer = toolcell_tests::eventually("the call's answer", || {
        serde_json::from_slice(&instance.get(&format!("/v1/calls/{}", request.call_id())).body).ok()
    });
    assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "late\n");
}
