//! Each refusal next to the allowed neighbour of the same act.

use serde_json::json;
use toolcell_types::ErrorCode::{self, InvalidArguments, InvalidRequest, PermissionDenied, RoleDenied, UnknownTool};

use super::*;
use crate::fixtures::{call, policy, somebody, strict};
use crate::{Policy, Role};

fn codes(problem: &Problem) -> Vec<ErrorCode> {
    problem.findings.iter().map(|one| one.code).collect()
}

/// Refused with this one code, and a word that must be in the detail.
fn refused(result: Result<AdmittedCall, Problem>, code: ErrorCode, word: &str) {
    let problem = result.expect_err(word);
    assert_eq!(codes(&problem), [code], "{problem}");
    assert_eq!(problem.code, code);
    assert!(problem.detail.contains(word), "{word:?} in {problem}");
    assert!(!problem.remedy.is_empty() && problem.call_id.as_deref() == Some("c-1"), "{problem:?}");
}

fn admitted(args: Value, more: Value) -> AdmittedCall {
    strict("show", args, more).unwrap()
}

#[test]
fn a_call_without_wishes_gets_the_tool_s_own_settings() {
    let call = admitted(json!({"text": "a b"}), json!({}));
    assert_eq!(call.argv, ["show", "--", "a b"]);
    assert_eq!((call.cwd.as_str(), call.image.as_str()), ("/tmp", "host"));
    assert_eq!(call.limits, Limits { wall_ms: 1000, ..Limits::default() });
    assert_eq!((call.complete_exit_codes, call.transient_exit_codes), (vec![0, 1], vec![2]));
    assert_eq!((call.mounts, call.stdin, call.effect_class.as_str()), (vec![], None, "read"));
}

#[test]
fn auditors_submit_nothing_and_callers_and_operators_do() {
    let policy = Policy::builtin().unwrap();
    let python = call("python", json!({"code": "1"}), json!({}));
    refused(policy.decide(&somebody(Role::Auditor), &python), RoleDenied, "auditor");
    for role in [Role::Caller, Role::Operator] {
        assert!(policy.decide(&somebody(role), &python).is_ok(), "{role}");
    }
}

#[test]
fn a_tool_that_is_not_visible_and_one_that_is_not_there_get_the_same_words() {
    let policy = policy(crate::fixtures::STRICT);
    let ask = |role, tool: &str| policy.decide(&somebody(role), &call(tool, json!({}), json!({})));
    let hidden = ask(Role::Caller, "hidden").unwrap_err();
    let absent = ask(Role::Caller, "absent").unwrap_err();
    assert_eq!(hidden.detail.replace("hidden", "absent"), absent.detail);
    assert_eq!(
        Problem { detail: String::new(), findings: vec![], ..hidden },
        Problem { detail: String::new(), findings: vec![], ..absent }
    );
    refused(ask(Role::Caller, "hidden"), UnknownTool, "hidden");
    refused(ask(Role::Caller, "Hidden"), UnknownTool, "Hidden");
    assert!(ask(Role::Operator, "hidden").is_ok());
}

#[test]
fn a_tool_that_is_denied_is_visible_and_refused() {
    refused(strict("shut", json!({}), json!({})), PermissionDenied, "shut");
    assert!(strict("show", json!({"text": ""}), json!({})).is_ok());
}

#[test]
fn arguments_must_fit_the_schema_and_the_refusal_carries_it() {
    for (args, path) in [
        (json!({}), "args: "),
        (json!({"text": 1}), "args/text: "),
        (json!({"text": "", "extra": 1}), "args: "),
        (json!({"text": "", "more": ["a", 1]}), "args/more/1: "),
    ] {
        let result = strict("show", args, json!({}));
        assert_eq!(result.as_ref().unwrap_err().expected_schema.as_ref().unwrap()["required"], json!(["text"]));
        refused(result, InvalidArguments, path);
    }
    assert!(strict("show", json!({"text": "", "more": ["a", "1"]}), json!({})).is_ok());
}

#[test]
fn findings_about_arguments_are_bounded_and_repeat_no_value() {
    let wrong: Vec<_> = (0..50).map(|n| json!(4_000_000 + n)).collect();
    let problem = strict("show", json!({"text": "", "more": wrong}), json!({})).unwrap_err();
    assert_eq!(problem.findings.len(), 16);
    assert!(problem.findings.iter().all(|one| !one.detail.contains("40000") && one.detail.len() < 1000));
}

#[test]
fn arguments_that_no_program_can_be_given_are_refused() {
    refused(strict("show", json!({"text": "a\u{0}"}), json!({})), InvalidArguments, "args/text: ");
    refused(strict("show", json!({"text": "x".repeat(131_072)}), json!({})), InvalidArguments, "131072 bytes");
    refused(strict("show", json!({"text": "", "more": ["\u{0}"]}), json!({})), InvalidArguments, "args/more/0: ");
    assert!(strict("show", json!({"text": "x".repeat(131_071)}), json!({})).is_ok());
    let exec = |argv: Value| {
        Policy::builtin().unwrap().decide(&somebody(Role::Operator), &call("exec", json!({"argv": argv}), json!({})))
    };
    refused(exec(json!(["", "a"])), InvalidArguments, "must name a program");
    refused(exec(json!([])), InvalidArguments, "args/argv: ");
    assert_eq!(exec(json!(["a", ""])).unwrap().argv, ["a", ""]);
}

#[test]
fn the_working_directory_is_absolute() {
    for dir in ["", "tmp", "/a/../b", "/a/"] {
        refused(strict("show", json!({"text": "", "dir": dir}), json!({})), InvalidArguments, "args/dir: ");
    }
    assert_eq!(admitted(json!({"text": "", "dir": "/a/b"}), json!({})).cwd, "/a/b");
}

#[test]
fn the_image_is_one_of_those_allowed() {
    for image in ["third", "Host", "", "host/.."] {
        refused(strict("show", json!({"text": "", "image": image}), json!({})), PermissionDenied, "host, other");
    }
    assert_eq!(admitted(json!({"text": "", "image": "other"}), json!({})).image, "other");
}

#[test]
fn limits_go_up_to_the_tool_s_maximum() {
    refused(
        strict("show", json!({"text": ""}), json!({"limits": {"wall_ms": 2001}})),
        PermissionDenied,
        "at most 2000",
    );
    refused(strict("show", json!({"text": ""}), json!({"limits": {"pids": 65}})), PermissionDenied, "limits.pids");
    let call = admitted(json!({"text": ""}), json!({"limits": {"wall_ms": 2000, "pids": 64, "cpu_ms": 1}}));
    assert_eq!(call.limits, Limits { wall_ms: 2000, cpu_ms: 1, ..Limits::default() });
}

#[test]
fn mounts_lie_in_the_allowed_folders() {
    let mount = |host: &str| json!({"mounts": [{"host": host, "inside": "/in", "mode": "ro"}]});
    for host in ["/", "/dat", "/database", "/srv", "/srv/file", "/etc/shadow"] {
        refused(strict("show", json!({"text": ""}), mount(host)), PermissionDenied, "/data, /srv/files");
    }
    for host in ["/data", "/data/a/b", "/srv/files", "/srv/files/x"] {
        assert_eq!(admitted(json!({"text": ""}), mount(host)).mounts[0].host, host);
    }
    refused(strict("shut", json!({}), json!({})), PermissionDenied, "shut");
}

#[test]
fn mounts_come_parents_first() {
    let mounts = json!({"mounts": [
        {"host": "/data/b", "inside": "/in/b", "mode": "ro"},
        {"host": "/data", "inside": "/in", "mode": "ro"},
    ]});
    let inside: Vec<_> = admitted(json!({"text": ""}), mounts).mounts.into_iter().map(|one| one.inside).collect();
    assert_eq!(inside, ["/in", "/in/b"]);
}

#[test]
fn the_environment_is_made_from_nothing_and_a_call_sets_what_it_may() {
    let pairs =
        |call: AdmittedCall| call.env.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    let plain = pairs(admitted(json!({"text": ""}), json!({})));
    assert_eq!(plain, ["HOME=/tmp", "LANG=C", "PATH=/usr/local/bin:/usr/bin:/bin", "TZ=UTC"]);
    let set = pairs(admitted(json!({"text": ""}), json!({"env": {"TZ": "CET", "COLOR": "no"}})));
    assert_eq!(set, ["COLOR=no", "HOME=/tmp", "LANG=C", "PATH=/usr/local/bin:/usr/bin:/bin", "TZ=CET"]);
    for name in ["PATH", "LD_PRELOAD", "COLOUR", "tz"] {
        let env = json!({"env": {name: "x"}});
        refused(strict("show", json!({"text": ""}), env), PermissionDenied, "COLOR, TZ");
    }
    let any = call("exec", json!({"argv": ["a"]}), json!({"env": {"PATH": "/x", "ANY": "1"}}));
    assert!(Policy::builtin().unwrap().decide(&somebody(Role::Operator), &any).is_ok());
}

#[test]
fn standard_input_is_text_or_base64_where_the_tool_takes_any() {
    for (stdin, bytes) in [(json!("ä"), "ä".as_bytes()), (json!({"base64": "AP8="}), &[0, 255]), (json!(""), b"")] {
        assert_eq!(admitted(json!({"text": ""}), json!({"stdin": stdin})).stdin.as_deref(), Some(bytes));
    }
    for wrong in ["AP8", "AP9=", "A P8=", "AP8=\n", "_-8=", "==="] {
        let result = strict("show", json!({"text": ""}), json!({"stdin": {"base64": wrong}}));
        refused(result, InvalidRequest, "stdin.base64");
    }
    let python = call("python", json!({"code": ""}), json!({"stdin": ""}));
    refused(Policy::builtin().unwrap().decide(&somebody(Role::Caller), &python), PermissionDenied, "python");
}

#[test]
fn everything_that_is_wrong_is_listed_and_the_first_in_gate_order_speaks() {
    let more = json!({
        "limits": {"wall_ms": 5000},
        "env": {"X": "1"},
        "mounts": [{"host": "/etc/x", "inside": "/in", "mode": "ro"}],
    });
    let problem = strict("show", json!({"text": 1}), more).unwrap_err();
    assert_eq!(codes(&problem), [InvalidArguments, PermissionDenied, PermissionDenied, PermissionDenied]);
    assert_eq!((problem.code, problem.status), (InvalidArguments, 422));
}

#[test]
fn a_request_that_did_not_come_through_the_decoder_is_checked_all_the_same() {
    let policy = policy(crate::fixtures::STRICT);
    let good = call("show", json!({"text": ""}), json!({}));
    assert!(policy.decide(&somebody(Role::Caller), &good).is_ok());
    let mut keyed = good.clone();
    keyed.key = Some("k".to_owned());
    refused(policy.decide(&somebody(Role::Caller), &keyed), InvalidRequest, "key is not in this version");
    let mut endless = good;
    endless.limits.wall_ms = Some(0);
    refused(policy.decide(&somebody(Role::Caller), &endless), InvalidRequest, "limits.wall_ms");
}
