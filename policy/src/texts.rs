//! Prints every refusal and every fault of a policy file, so that somebody has read each text before it is needed.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolcell_types::Problem;

use crate::fixtures::{STRICT, body, call, policy, somebody, strict};
use crate::malformed::Malformed;
use crate::{Policy, Role, request};

fn print(title: &str, problem: &Problem) -> String {
    let mut out = format!("== {title}\n{} {} retryable={}\n", problem.code, problem.status, problem.retryable);
    writeln!(out, "detail: {}\nremedy: {}", problem.detail, problem.remedy).unwrap();
    for more in problem.findings.iter().skip(1) {
        writeln!(out, "also:   {} {}", more.code, more.detail).unwrap();
    }
    out.push('\n');
    out
}

/// Bodies that are refused before any policy is asked, each for one reason.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let with = |more: Value| body("show", json!({}), more);
    let mount = |host: &str, inside: &str, mode: &str| {
        with(json!({"mounts": [{"host": host, "inside": inside, "mode": mode}]}))
    };
    vec![
        ("too long", vec![b' '; toolcell_types::BODY_MAX_BYTES + 1]),
        ("not UTF-8", b"{\"a\":\"\xff\"}".to_vec()),
        ("byte order mark", "\u{feff}{}".into()),
        ("member twice", br#"{"a":{"b":1,"b":2}}"#.to_vec()),
        ("number too large", br#"{"a":9007199254740992}"#.to_vec()),
        ("negative zero", br#"{"a":-0}"#.to_vec()),
        ("too deep", "[".repeat(33).into_bytes()),
        ("too many values", format!("[{}0]", "0,".repeat(10_000)).into_bytes()),
        ("no JSON", b"{\"a\":1} x".to_vec()),
        ("lone surrogate", br#""\ud800""#.to_vec()),
        ("no object", b"[]".to_vec()),
        ("no call id", b"{}".to_vec()),
        ("no tool", br#"{"call_id":"c"}"#.to_vec()),
        ("no arguments", br#"{"call_id":"c","tool":"t"}"#.to_vec()),
        ("bad call id", with(json!({"call_id": "../a"}))),
        ("wrong kind", with(json!({"env": [["A", "1"]]}))),
        ("null", with(json!({"salt": null}))),
        ("unknown member", with(json!({"nonsense": 1}))),
        ("later member", with(json!({"key": "k"}))),
        ("later mode", mount("/a", "/b", "rw")),
        ("ablation", with(json!({"ablate": ["seccomp"]}))),
        ("unknown limit", with(json!({"limits": {"wall": 1}}))),
        ("limit zero", with(json!({"limits": {"wall_ms": 0}}))),
        ("limit of another unit", with(json!({"limits": {"wall_ms": "10s"}}))),
        ("deadline zero", with(json!({"deadline_ms": 0}))),
        ("bad variable name", with(json!({"env": {"1A": "x"}}))),
        ("variable with NUL", with(json!({"env": {"A": "\u{0}"}}))),
        ("variable too long", with(json!({"env": {"A": "x".repeat(131_072)}}))),
        ("bad label", with(json!({"labels": {"a": "x".repeat(257)}}))),
        ("no mount", with(json!({"mounts": [{"host": "/a"}]}))),
        ("mount with another member", with(json!({"mounts": [{"host": "/a", "inside": "/b", "mode": "ro", "x": 1}]}))),
        ("relative host path", mount("data", "/in", "ro")),
        ("dotted host path", mount("/data/../etc", "/in", "ro")),
        ("mount over the cell's own", mount("/data", "/usr/share", "ro")),
        ("bad stdin", with(json!({"stdin": {"base64": "AA==", "x": 1}}))),
        ("several", with(json!({"nonsense": 1, "key": "k", "deadline_ms": 0, "ablate": ["seccomp"]}))),
    ]
}

fn denied() -> Vec<(&'static str, Problem)> {
    let text = || json!({"text": ""});
    let ask = |tool: &str, args: Value, more: Value| strict(tool, args, more).unwrap_err();
    let python = call("python", json!({"code": "1"}), json!({}));
    let limits = json!({"limits": {"wall_ms": 2001}});
    let mounts = json!({"mounts": [{"host": "/etc", "inside": "/in", "mode": "ro"}]});
    vec![
        ("auditor", Policy::builtin().unwrap().decide(&somebody(Role::Auditor), &python).unwrap_err()),
        ("not registered", ask("nothing", json!({}), json!({}))),
        ("not visible", ask("hidden", json!({}), json!({}))),
        ("no tool at all", policy("[tools]").decide(&somebody(Role::Caller), &python).unwrap_err()),
        ("argument missing", ask("show", json!({}), json!({}))),
        ("argument of another type", ask("show", json!({"text": 1}), json!({}))),
        ("argument too many", ask("show", json!({"text": "", "extra": 1}), json!({}))),
        ("argument with NUL", ask("show", json!({"text": "\u{0}"}), json!({}))),
        ("argument too long", ask("show", json!({"text": "x".repeat(131_072)}), json!({}))),
        ("relative directory", ask("show", json!({"text": "", "dir": "tmp"}), json!({}))),
        ("nothing to run", {
            let exec = call("exec", json!({"argv": [""]}), json!({}));
            Policy::builtin().unwrap().decide(&somebody(Role::Operator), &exec).unwrap_err()
        }),
        ("denied tool", ask("shut", json!({}), json!({}))),
        ("limit", ask("show", text(), limits)),
        ("mount", ask("show", text(), mounts)),
        ("variable", ask("show", text(), json!({"env": {"PATH": "/x"}}))),
        ("standard input", ask("shut", json!({}), json!({"stdin": ""}))),
        ("image", ask("show", json!({"text": "", "image": "third"}), json!({}))),
        ("base64", ask("show", text(), json!({"stdin": {"base64": "###"}}))),
        ("several", ask("show", json!({}), json!({"env": {"X": "1"}, "limits": {"pids": 1000}}))),
    ]
}

#[test]
fn every_refusal_says_what_was_expected_what_came_and_what_to_do() {
    let mut out = String::new();
    for (title, body) in malformed() {
        out += &print(title, &request::decode(&body).expect_err(title));
    }
    for (title, problem) in denied() {
        out += &print(title, &problem);
    }
    // Cannot come from bytes: the parser takes no such number.
    let source = toolcell_types::json::canonical(&json!(1e300)).unwrap_err();
    out += &print("no canonical form", &request::refuse(Malformed::Canonical { source }, [], None));
    insta::assert_snapshot!("refusals", out);
}

type Files = Vec<(String, Vec<u8>)>;

/// Files with one mistake each.
fn files() -> Vec<(&'static str, Files)> {
    let one = |text: &str| vec![("tools.toml".to_owned(), text.as_bytes().to_vec())];
    let spoilt = |from: &str, to: &str| one(&STRICT.replacen(from, to, 1));
    let two = |name: &str| vec![("tools.toml".to_owned(), STRICT.into()), (name.to_owned(), Vec::new())];
    vec![
        ("no file", Vec::new()),
        ("another file", two("tols.toml")),
        ("a file of a later version", two("rules.toml")),
        ("twice", [one(STRICT), one(STRICT)].concat()),
        ("too large", one(&"\n".repeat(1024 * 1024 + 1))),
        ("not UTF-8", vec![("tools.toml".to_owned(), b"# \xe4".to_vec())]),
        ("no TOML", spoilt("[0, 1]", "[0, 1")),
        ("key twice", spoilt("stdin = true", "stdin = true\nstdin = true")),
        ("unknown key", spoilt("roles = ", "rolls = ")),
        ("unknown limit", spoilt("wall_ms = 1000", "wall_s = 1")),
        ("missing key", spoilt("description = \"Prints what it is given\"", "")),
        ("wrong kind", spoilt("stdin = true", "stdin = \"yes\"")),
        ("wrong word", spoilt("permission = \"allow\"", "permission = \"maybe\"")),
        ("later word", spoilt("permission = \"allow\"", "permission = \"ask\"")),
        ("later effect", spoilt("cwd = \"{dir}\"", "cwd = \"{dir}\"\neffect_class = \"write\"")),
        ("later key", spoilt("cwd = \"{dir}\"", "cwd = \"{dir}\"\nresult = \"stdout-json\"")),
        ("limit zero", spoilt("wall_ms = 1000", "wall_ms = 0")),
        ("maximum below the limit", spoilt("wall_ms = 2000", "wall_ms = 999")),
        ("bad name", spoilt("[tools.shut]", "[tools.Shut]")),
        ("placeholder within a text", spoilt("\"--\"", "\"--a={text}\"")),
        ("placeholder of nothing", spoilt("\"--\"", "\"{nothing}\"")),
        ("placeholder of another kind", spoilt("\"--\"", "\"{more}\"")),
        ("argument that goes nowhere", spoilt(", \"{more...}\"", "")),
        ("open schema", spoilt("additionalProperties = false", "")),
        ("unknown keyword", spoilt("maxLength", "maxLenght")),
        ("bad schema", spoilt("maxLength = 200000", "maxLength = -1")),
        ("bad pattern", spoilt("maxLength = 200000", "pattern = \"(\"")),
        ("reference to elsewhere", spoilt("maxLength = 200000", "\"$ref\" = \"https://example.com/\"")),
        ("relative mount", spoilt("\"/data\"", "\"data\"")),
        ("code in both", spoilt("transient_exit_codes = [2]", "transient_exit_codes = [1]")),
        ("auditor", spoilt("[\"caller\", \"operator\"]", "[\"auditor\"]")),
    ]
}

#[test]
fn every_fault_of_a_policy_file_says_where_it_is_and_what_was_expected() {
    let mut out = String::new();
    for (title, files) in files() {
        writeln!(out, "== {title}\n{}\n", Policy::parse(&files).expect_err(title)).unwrap();
    }
    writeln!(out, "== image that is not there\n{}", policy(STRICT).check_images(&["host"]).unwrap_err()).unwrap();
    insta::assert_snapshot!("faults", out);
}

#[test]
fn the_example_in_the_documentation_is_a_right_policy() {
    let docs = include_str!("lib.rs").lines().map(|line| line.trim_start_matches("//!"));
    let example = docs.skip_while(|line| !line.ends_with("```toml")).skip(1).take_while(|line| !line.ends_with("```"));
    let example: Vec<&str> = example.collect();
    let tools = policy(&example.join("\n")).tools_for(&somebody(Role::Caller));
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["count"]);
}
