//! The report of a default call: all 29 controls, how each was seen, and what becomes of one that cannot be had.

use serde_json::{Value, json};
use toolcell_tests::{Instance, Need, Request, Setup, kernel_version, needs};
use toolcell_types::{ControlId, ControlState, ErrorCode, Verdict, Verification};

/// How each control of a default call is to be verified.
fn expected(id: ControlId) -> Verification {
    match id.as_str() {
        "output.cap" | "environment.allowlist" => Verification::Configured,
        "landlock.fs" | "landlock.net" | "landlock.scope" | "userns.nested" | "root.readonly" | "proc.masked"
        | "namespace.net" | "capabilities" | "rlimits" | "seccomp" => Verification::Probed,
        _ => Verification::ReadBack,
    }
}

fn member<T: serde::de::DeserializeOwned>(item: &Value, name: &str) -> T {
    serde_json::from_value(item[name].clone()).unwrap_or_else(|error| panic!("{name}: {error} in {item}"))
}

/// Landlock knows TCP since Linux 6.7 and scopes since 6.12.
fn is_to_be_had(id: ControlId) -> bool {
    let least = match id.as_str() {
        "landlock.net" => (6, 7),
        "landlock.scope" => (6, 12),
        _ => (0, 0),
    };
    kernel_version() >= least
}

fn all_are_as_they_should_be(request: &Request) {
    let instance = Instance::start();
    let answer = instance.call(request);
    let ids: Vec<ControlId> = answer.controls.iter().map(|item| member(item, "id")).collect();
    assert_eq!(ids, ControlId::ALL, "each once, in the order of every report");
    for (id, item) in ids.into_iter().zip(&answer.controls) {
        assert_eq!(member::<bool>(item, "required"), id.is_required_by_default(), "{item}");
        assert_eq!(item.as_object().unwrap().len(), 6, "{item}");
        if !is_to_be_had(id) {
            assert_eq!(member::<ControlState>(item, "state"), ControlState::Unavailable, "{item}");
            continue;
        }
        assert_eq!(member::<ControlState>(item, "state"), ControlState::Enforced, "{item}");
        assert_eq!(member::<Verification>(item, "verification"), expected(id), "{item}");
        for side in ["requested", "observed"] {
            let facts = item[side].as_object().unwrap_or_else(|| panic!("{side} is an object: {item}"));
            assert!(!facts.is_empty(), "{side} of {item}");
            assert!(item[side].to_string().len() <= 512, "{side} of {item}");
        }
    }
}

#[test]
fn all_29_controls_of_a_default_call_are_enforced_and_seen_as_they_should_be() {
    needs!(Need::Root);
    all_are_as_they_should_be(&Request::exec(&["true"]));
}

#[test]
fn all_29_controls_of_another_tool_s_call_are_the_same() {
    needs!(Need::Root, Need::Tool("python3"));
    all_are_as_they_should_be(&Request::tool("python", json!({ "code": "1" })));
}

#[test]
fn the_limits_of_a_call_stand_in_what_was_asked_for_and_what_was_seen() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limits = json!({
        "wall_ms": 7001, "cpu_ms": 6002, "memory_bytes": 100_003_840, "pids": 23, "cpu_millis": 750,
        "tmp_bytes": 5_005_312, "tmp_inodes": 777, "output_keep_bytes": 12_345, "output_limit_bytes": 123_456,
        "file_bytes": 3_333_333, "open_files": 99,
    });
    let answer = instance.call(&Request::exec(&["true"]).limits(limits));
    for (control, limit_ms) in [("wall-clock", 7001), ("cpu-clock", 6002)] {
        let item = answer.controls.iter().find(|item| item["id"] == control).unwrap();
        assert_eq!(item["requested"]["limit_ms"], limit_ms, "{item}");
        // The processor's timer looks again before the time can be used up on all processors of the machine.
        let left_us = item["observed"]["timer_left_us"].as_u64().unwrap();
        assert!((1..=limit_ms * 1000).contains(&left_us), "{item}");
    }
    for (control, numbers) in [
        ("cgroup.memory", vec![100_003_840]),
        ("cgroup.pids", vec![23]),
        ("tmp.quota", vec![5_005_312, 777]),
        ("output.cap", vec![12_345, 123_456]),
        ("rlimits", vec![3_333_333, 99]),
    ] {
        let item = answer.controls.iter().find(|item| item["id"] == control).unwrap();
        for number in numbers {
            for side in ["requested", "observed"] {
                let text = item[side].to_string();
                let there = text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits == number.to_string());
                assert!(there, "{control}: {number} in {side}: {text}");
            }
        }
    }
}

/// Started with a hard limit of descriptors that is lower than what calls ask for.
fn with_few_descriptors() -> Setup {
    Setup::default().wrapped(&["/bin/sh", "-c", "ulimit -n 200; exec \"$0\" \"$@\""])
}

#[test]
fn a_required_control_that_cannot_be_had_refuses_the_call_with_a_remedy() {
    needs!(Need::Root);
    let instance = with_few_descriptors().start();
    let entries = instance.receipts().len();
    let problem = instance.post(&Request::exec(&["true"])).problem(ErrorCode::ControlUnavailable);
    assert!(problem.detail.contains("rlimits") && problem.remedy.contains("--accept-unavailable"), "{problem:?}");
    assert_eq!(instance.receipts().len(), entries, "nothing was promised");
    let less = instance.call(&Request::exec(&["true"]).limits(json!({ "open_files": 200 })));
    assert_eq!(less.verdict, Verdict::Exited { exit_code: 0 }, "the control: within that limit it runs");
}

#[test]
fn an_accepted_loss_of_a_control_stands_in_every_receipt() {
    needs!(Need::Root);
    use base64::Engine as _;
    let instance = with_few_descriptors().flags(&["--accept-unavailable", "rlimits"]).start();
    let answer = instance.call(&Request::exec(&["true"]));
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 });
    let payload = base64::engine::general_purpose::STANDARD.decode(&answer.receipt.payload).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    let items = statement["predicate"]["controls"]["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["id"] == "rlimits").unwrap();
    assert_eq!((item["state"].as_str(), item["required"].as_bool()), (Some("unavailable"), Some(false)), "{item}");
    let others = ControlId::ALL.into_iter().filter(|id| is_to_be_had(*id)).count() - 1;
    assert_eq!(items.iter().filter(|item| item["state"] == "enforced").count(), others);
}

#[test]
fn the_receipt_repeats_the_report() {
    needs!(Need::Root);
    use base64::Engine as _;
    let instance = Instance::start();
    let answer = instance.call(&Request::exec(&["true"]));
    let payload = base64::engine::general_purpose::STANDARD.decode(&answer.receipt.payload).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(statement["predicate"]["controls"]["items"], Value::Array(answer.controls));
    assert_eq!(statement["predicate"]["controls"]["mode"], "production");
}
