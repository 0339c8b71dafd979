//! `toolcell run` as a newcomer without root types it.

use std::collections::BTreeSet;

use toolcell_tests::{Need, OrdinaryUser, Request, needs, run};
use toolcell_types::{CallState, Effect, ErrorCode, Verdict};

use super::{both_users, missing, start, way_to_ids};

/// The value of the option that a refusal names, as it stands there.
fn flag_of(text: &str) -> &str {
    let rest = text.split("--accept-unavailable ").nth(1).unwrap_or_else(|| panic!("no flag in {text:?}"));
    rest.split(|c: char| c.is_whitespace() || c == '"').next().unwrap_or_default()
}

#[test]
fn a_call_that_lacks_controls_is_refused_before_any_intent_and_the_named_flag_runs_it() {
    needs!(Need::OrdinaryUsers, Need::Tool("python3"));
    for user in both_users() {
        let words = ["--", "python3", "-c", "print(6*7)"];
        let refused = run(&mut user.toolcell(&[&["run"], &words[..]].concat())).expect_code(126);
        assert_eq!(refused.text(), "");
        assert!(refused.stderr.contains("CONTROL_UNAVAILABLE"), "{}", refused.stderr);
        let flag = flag_of(&refused.stderr).to_owned();
        assert_eq!(flag.split(',').collect::<BTreeSet<_>>(), missing(&user), "{}", refused.stderr);
        for name in missing(&user) {
            assert!(refused.stderr.split("hint:").next().is_some_and(|told| told.contains(name)), "{}", refused.stderr);
        }
        let log = run(&mut user.toolcell(&["receipts", "--json"])).expect_code(0).json();
        assert_eq!(log["receipts"].as_array().map(Vec::len), Some(1), "nothing but the log's first entry: {log}");

        let done = run(&mut user.toolcell(&[&["run", "--accept-unavailable", &flag], &words[..]].concat()));
        assert_eq!(done.expect_code(0).text(), "42\n");
        let log = run(&mut user.toolcell(&["receipts", "--json"])).expect_code(0).json();
        assert_eq!(log["receipts"].as_array().map(Vec::len), Some(3), "an intent and an outcome");
        user.end_daemons();
        assert_eq!(user.processes(), Vec::new(), "nothing is left of {}", user.name());
    }
}

#[test]
fn the_refusal_over_the_api_is_503_with_every_control_in_it() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = toolcell_tests::Setup::default().user(&user).start();
        let response = instance.post(&Request::exec(&["true"]));
        assert_eq!(response.status(), 503);
        let problem = response.problem(ErrorCode::ControlUnavailable);
        let flag = flag_of(&problem.remedy);
        assert_eq!(flag.split(',').collect::<BTreeSet<_>>(), missing(&user));
        assert!(missing(&user).iter().all(|name| problem.detail.contains(name)), "{}", problem.detail);
        if user.range().is_none() {
            assert!(problem.remedy.contains(way_to_ids()), "{}", problem.remedy);
        }
        assert_eq!(instance.receipts().len(), 1, "nothing was written");
        // All but one of them is not enough.
        let most: Vec<&str> = missing(&user).into_iter().skip(1).collect();
        let left = missing(&user).into_iter().next().unwrap();
        drop(instance);
        let setup = toolcell_tests::Setup::default().user(&user);
        let instance = setup.flags(&["--accept-unavailable", &most.join(",")]).start();
        let problem = instance.post(&Request::exec(&["true"])).problem(ErrorCode::ControlUnavailable);
        assert!(problem.detail.contains(left), "{}", problem.detail);
        assert_eq!(flag_of(&problem.remedy).split(',').collect::<BTreeSet<_>>(), missing(&user), "the whole flag");
    }
}

#[test]
fn what_was_accepted_stands_in_the_answer_and_all_else_is_enforced() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        let answer = instance.call(&Request::exec(&["true"]));
        assert_eq!((answer.state, answer.effect), (CallState::Complete, Effect::None));
        assert_eq!(answer.controls.len(), 29);
        for item in &answer.controls {
            let name = item["id"].as_str().unwrap();
            let (state, required) = (item["state"].as_str().unwrap(), item["required"].as_bool().unwrap());
            if missing(&user).contains(name) {
                assert_eq!((state, required), ("unavailable", false), "{item}");
            } else {
                let second_line = ["landlock.net", "landlock.scope"].contains(&name);
                assert_eq!((state, required), ("enforced", !second_line), "{item}");
            }
        }
        // No figure that nobody counted.
        let usage = &answer.usage;
        assert_eq!((usage.cpu_user_us, usage.memory_peak_bytes, usage.oom_kills), (None, None, None));
        assert!(usage.wall_us.is_some());
    }
}

#[test]
fn receipts_verify_against_the_user_s_own_key_and_name_the_user() {
    needs!(Need::OrdinaryUsers);
    use base64::Engine as _;
    for user in both_users() {
        let receipt = user.home().join("receipt.json").to_string_lossy().into_owned();
        let flag = super::accepted(&user);
        let words = ["run", "--accept-unavailable", &flag, "--receipt", &receipt, "--", "true"];
        assert_eq!(run(&mut user.toolcell(&words)).expect_code(0).code, 0);
        let verified = run(&mut user.toolcell(&["verify", &receipt])).expect_code(0);
        assert!(verified.stderr.contains(&user.state().to_string_lossy().into_owned()), "{}", verified.stderr);
        let envelope: serde_json::Value = serde_json::from_slice(&std::fs::read(&receipt).unwrap()).unwrap();
        let payload = base64::engine::general_purpose::STANDARD.decode(envelope["payload"].as_str().unwrap());
        let statement: serde_json::Value = serde_json::from_slice(&payload.unwrap()).unwrap();
        let peer = &statement["predicate"]["authorization"]["submitter"]["peer"];
        assert_eq!((&peer["uid"], &peer["gid"]), (&user.uid().into(), &user.gid().into()));

        let text = std::fs::read_to_string(&receipt).unwrap();
        std::fs::write(&receipt, text.replacen("\"sig\":\"", "\"sig\":\"AAAA", 1)).unwrap();
        assert_eq!(run(&mut user.toolcell(&["verify", &receipt])).code, 1, "the control: one that was changed");
        user.end_daemons();
    }
}

#[test]
fn two_instances_of_one_user_never_share_an_id() {
    needs!(Need::SubordinateIds);
    let user = OrdinaryUser::with_ids();
    let instances = [start(&user), start(&user)];
    let uids: BTreeSet<String> = instances
        .iter()
        .map(|instance| {
            let running = toolcell_tests::Running::until_up(instance, &Request::program("waits", &[]));
            let cell = instance.cell_processes();
            let tool = cell.iter().find(|process| process.name == "waits").expect("the tool is there");
            assert!(tool.uid != user.uid() && user.has(tool.uid), "{tool:?}");
            let uid = tool.status("Uid");
            assert_eq!(running.cancel().status() / 100, 2);
            assert_eq!(running.answer().verdict, Verdict::Cancelled);
            uid
        })
        .collect();
    assert_eq!(uids.len(), 2, "{uids:?}");
}
