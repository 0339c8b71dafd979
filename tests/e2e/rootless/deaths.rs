//! `kill -9` of each part of an ordinary user's instance, and the next start.

use serde_json::json;
use toolcell_tests::{Instance, Need, Process, Request, Running, eventually, needs, wait_gone};
use toolcell_types::{CallState, Effect, ErrorCode, Verdict};

use super::{both_users, start};

fn kill_and_start_again(part: fn(&Instance) -> Process) {
    for user in both_users() {
        let instance = start(&user);
        let request = Request::program("leaves_children", &["daemon", "stay"]).limits(json!({ "wall_ms": 60_000 }));
        let running = Running::until_up(&instance, &request);
        let tree =
            eventually("init, main and child", || Some(instance.cell_processes()).filter(|tree| tree.len() >= 3));
        let (name, victim) = (instance.name().to_owned(), part(&instance));
        let home = instance.crash(&victim);
        wait_gone(&tree);
        let remains = home.remains(Some(&name));
        assert_eq!((remains.processes(), remains.mounts()), (Vec::new(), Vec::new()));

        let instance = home.start();
        assert_eq!(instance.name(), name, "the instance keeps its name");
        let answer = running.answer();
        assert_eq!(answer.verdict, Verdict::Lost);
        assert_eq!((answer.state, answer.effect), (CallState::Failed, Effect::None), "all of it was seen gone");
        drop(instance.post(&request).problem(ErrorCode::BudgetExhausted));
        assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
    }
}

#[test]
fn a_killed_launcher_takes_its_cells_along_and_the_call_is_lost() {
    needs!(Need::OrdinaryUsers);
    kill_and_start_again(Instance::launcher);
}

#[test]
fn a_killed_daemon_takes_its_cells_along_and_the_call_is_lost() {
    needs!(Need::OrdinaryUsers);
    kill_and_start_again(Instance::daemon);
}

#[test]
fn a_killed_signer_takes_its_cells_along_and_the_call_is_lost() {
    needs!(Need::OrdinaryUsers);
    kill_and_start_again(Instance::signer);
}
