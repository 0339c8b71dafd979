//! `kill -9` of each of our processes, and the next start.

use std::path::PathBuf;

use serde_json::json;
use toolcell_tests::{Home, Instance, Need, Process, Request, Running, eventually, needs};
use toolcell_types::{Answer, CallState, Effect, ErrorCode, Verdict};

/// Kills a part while a call runs; sees that no process, mount or descriptor survives.
fn crash_mid_call(part: impl Fn(&Instance) -> Process) -> (Home, Running, String, Request) {
    let instance = Instance::start();
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
    let request = Request::program("leaves_children", &["daemon", "stay"]).limits(json!({ "wall_ms": 60_000 }));
    let running = Running::until_up(&instance, &request);
    let tree = eventually("init, main and child", || Some(running.processes()).filter(|tree| tree.len() >= 3));
    let name = instance.name().to_owned();
    let victim = part(&instance);
    let home = instance.crash(&victim);
    toolcell_tests::wait_gone(&tree);
    let remains = home.remains(Some(&name));
    assert_eq!(remains.processes(), Vec::<String>::new());
    assert_eq!(remains.mounts(), Vec::<String>::new());
    (home, running, name, request)
}

/// Starts again: the call is settled as lost, by a receipt, and nothing runs a second time.
fn next_start_settles(home: Home, running: &Running, name: &str, request: &Request) {
    let instance = home.start();
    assert_eq!(instance.name(), name, "the instance keeps its name");
    assert_eq!(instance.cell_groups(), Vec::<PathBuf>::new(), "cgroups of the dead are removed");
    let answer: Answer = running.answer();
    assert_eq!(answer.verdict, Verdict::Lost);
    assert_eq!((answer.state, answer.effect, answer.is_error), (CallState::Failed, Effect::None, true));
    let entries = instance.receipts();
    drop(instance.post(request).problem(ErrorCode::BudgetExhausted));
    assert_eq!(instance.receipts().len(), entries.len(), "no second attempt");
    assert_eq!(running.answer(), answer, "the settled answer is what it stays");
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
}

#[test]
fn a_killed_daemon_leaves_nothing_and_the_call_is_lost() {
    needs!(Need::Root);
    let (home, running, name, request) = crash_mid_call(Instance::daemon);
    // The launcher outlives it, and cleans up.
    home.remains(Some(&name)).vanish();
    next_start_settles(home, &running, &name, &request);
}

#[test]
fn a_killed_signer_leaves_nothing_and_the_call_is_lost() {
    needs!(Need::Root);
    let (home, running, name, request) = crash_mid_call(Instance::signer);
    // The launcher outlives it, and cleans up.
    home.remains(Some(&name)).vanish();
    next_start_settles(home, &running, &name, &request);
}

#[test]
fn a_killed_launcher_leaves_no_process_and_the_next_start_sweeps_the_rest() {
    needs!(Need::Root);
    let (home, running, name, request) = crash_mid_call(Instance::launcher);
    next_start_settles(home, &running, &name, &request);
}

#[test]
fn an_intent_is_durable_before_the_program_runs() {
    needs!(Need::Root);
    let (home, running, _name, _request) = crash_mid_call(Instance::daemon);
    let instance = home.start();
    let entries = instance.receipts();
    let intent = entries.iter().find(|entry| entry.envelope == running.accepted.intent);
    let intent = intent.expect("the intent of the killed call is in the log");
    let outcome = running.answer().receipt;
    let last = entries.iter().find(|entry| entry.envelope == outcome).expect("and so is what settled it");
    assert!(intent.index < last.index);
}

#[test]
fn kills_at_any_moment_leave_a_log_that_starts_again() {
    needs!(Need::Root);
    let mut instance = Instance::start();
    let mut known = 0;
    for round in 0_u32..12 {
        let requests: Vec<Request> = (0..8).map(|_| Request::exec(&["true"])).collect();
        let seen = std::thread::scope(|scope| {
            let submitters: Vec<_> = requests
                .iter()
                .map(|request| {
                    let mut connection = instance.connect();
                    scope.spawn(move || {
                        let answer = connection.ask("POST", "/v1/calls", &[], &request.bytes());
                        answer.ok().filter(|response| response.status() == 200).map(|response| response.answer())
                    })
                })
                .collect();
            eventually("some of the calls to be in the log", || {
                (instance.receipts().len() > known + usize::try_from(round).unwrap()).then_some(())
            });
            let victim = [Instance::daemon, Instance::signer, Instance::launcher][usize::try_from(round % 3).unwrap()];
            let victim = victim(&instance);
            let home = instance.crash(&victim);
            let answers: Vec<Answer> =
                submitters.into_iter().filter_map(|submitter| submitter.join().unwrap()).collect();
            (home, answers)
        });
        instance = seen.0.start();
        assert_eq!(instance.health().status, "ok");
        for answer in seen.1 {
            let stored = instance.get(&format!("/v1/calls/{}", answer.call_id));
            assert_eq!(stored.answer(), answer, "an answer that left is in the log");
        }
        for request in &requests {
            let stored = instance.get(&format!("/v1/calls/{}", request.call_id()));
            if stored.status() == 404 {
                drop(stored.problem(ErrorCode::NotFound));
            } else {
                assert_ne!(stored.answer().state, CallState::Submitting, "settled at start");
            }
        }
        known = instance.receipts().len();
    }
}

#[test]
fn a_term_right_after_the_start_ends_clean() {
    needs!(Need::Root);
    let mut home = Instance::start().stop();
    for _ in 0..5 {
        home = home.start_and_stop_at_once();
    }
}

#[test]
fn a_state_directory_in_use_is_refused_and_stays_untouched() {
    needs!(Need::Root);
    let instance = Instance::start();
    let state = instance.home().state().to_string_lossy().into_owned();
    let other = instance.home().dir().join("other").to_string_lossy().into_owned();
    let second = toolcell_tests::run(&mut toolcell_tests::toolcell(&["serve", "--socket", &other, "--state", &state]));
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains(&state), "it says which: {}", second.stderr);
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
}

#[test]
fn a_log_that_was_cut_or_changed_is_refused_at_start() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = Instance::start();
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
    let home = instance.stop();
    let ledger = home.state().join("ledger.db").to_string_lossy().into_owned();
    let change = "import sqlite3,sys\nd=sqlite3.connect(sys.argv[1])\nd.execute('DROP TRIGGER entry_no_update')\n\
                  d.execute(\"UPDATE entry SET payload=CAST(replace(CAST(payload AS TEXT),'exited','exitex') AS BLOB)\")\n\
                  d.commit()";
    assert_eq!(
        toolcell_tests::run(toolcell_tests::command("python3").args(["-c", change, &ledger])).expect_code(0).code,
        0
    );
    let instance = home.start();
    assert_eq!(instance.health().status, "ledger_invalid");
    let refused = instance.post(&Request::exec(&["true"]));
    drop(refused.problem(ErrorCode::LedgerInvalid));
}
