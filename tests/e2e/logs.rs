//! Logs tell what happened, and never an argument's value or a byte of output.

use serde_json::{Value, json};
use toolcell_tests::{Instance, Need, Request, Setup, needs};

/// A text that nothing else on the machine contains.
fn marker(what: &str) -> String {
    format!("marker{what}{}", std::process::id())
}

#[test]
fn no_argument_value_and_no_output_stands_in_the_log_at_any_level() {
    needs!(Need::Root);
    let instance = Setup::default().env("RUST_LOG", "trace").start();
    let request = Request::shell(&format!("echo {}out; echo {}err >&2; exit 9", marker("a"), marker("a")))
        .with("env", json!({ "SECRET": marker("e") }))
        .with("stdin", json!(marker("s")))
        .with("salt", json!(marker("t")));
    let answer = instance.call(&request);
    assert!(serde_json::to_string(&answer.stdout).unwrap().contains(&marker("a")), "the control");
    let bad = Request::tool("python", json!({ "code": [marker("b")] }));
    assert_eq!(instance.post(&bad).status(), 422);
    let malformed =
        format!("{{\"call_id\":\"x\",\"tool\":\"exec\",\"args\":{{\"argv\":[\"{}\"]}},\"x\":1}}", marker("m"));
    assert_eq!(instance.post_with("/v1/calls", &[], malformed.as_bytes()).status(), 400);
    let log = instance.log();
    assert!(log.contains(&request.call_id()), "the call itself is there: {log}");
    for what in ["a", "e", "s", "t", "b", "m"] {
        assert!(!log.contains(&marker(what)), "{what}: {log}");
    }
}

#[test]
fn json_logs_are_one_object_a_line_with_a_level_and_a_time() {
    needs!(Need::Root);
    let instance = Instance::start();
    drop(instance.call(&Request::exec(&["true"])));
    let log = instance.log();
    assert!(!log.is_empty());
    for line in log.lines() {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(entry["level"].is_string() && entry["timestamp"].is_string(), "{line}");
    }
}

#[test]
fn control_characters_of_a_request_do_not_reach_the_log_raw() {
    needs!(Need::Root);
    let instance = Setup::default().env("RUST_LOG", "trace").start();
    let request = Request::tool("no\u{1b}[31msuch\ntool", json!({}));
    assert!(instance.post(&request).status() >= 400);
    let raw = instance.log().bytes().any(|byte| byte < 0x20 && byte != b'\n');
    assert!(!raw, "{:?}", instance.log());
}
