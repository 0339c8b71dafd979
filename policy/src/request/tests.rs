//! Requests that are understood, and their neighbours that are not.

use serde_json::json;
use toolcell_types::{ErrorCode, MountMode, StdinSpec};

use super::*;
use crate::fixtures::body;

fn decoded(more: Value) -> Decoded {
    decode(&body("show", json!({"x": 1}), more)).unwrap()
}

/// Refused with this one finding.
fn refused(body: &[u8], word: &str) {
    let problem = decode(body).expect_err(word);
    let details: Vec<_> = problem.findings.iter().map(|one| one.detail.as_str()).collect();
    assert_eq!((problem.code, problem.findings.len()), (ErrorCode::InvalidRequest, 1), "{details:?}");
    assert!(problem.detail.contains(word), "{word:?} in {details:?}");
}

fn refused_with(more: Value, word: &str) {
    refused(&body("show", json!({}), more), word);
}

#[test]
fn a_complete_request_is_read() {
    let request = decoded(json!({
        "limits": {"wall_ms": 5, "pids": 7},
        "mounts": [{"host": "/a", "inside": "/b", "mode": "ro"}],
        "env": {"A": "1"},
        "stdin": {"base64": "AA=="},
        "deadline_ms": 60_000,
        "labels": {"team": "ä"},
        "salt": "s",
        "files": [], "outputs": [], "preconditions": [], "ablate": [],
    }))
    .request;
    assert_eq!((request.call_id.as_str(), request.tool.as_str(), request.args["x"].as_u64()), ("c-1", "show", Some(1)));
    assert_eq!((request.limits.wall_ms, request.limits.pids, request.limits.cpu_ms), (Some(5), Some(7), None));
    assert_eq!((request.mounts[0].host.as_str(), request.mounts[0].mode), ("/a", MountMode::Ro));
    assert_eq!(request.stdin, Some(StdinSpec::Base64 { base64: "AA==".to_owned() }));
    assert_eq!((request.deadline_ms, request.labels["team"].as_str()), (Some(60_000), "ä"));
    assert_eq!((request.salt.as_deref(), request.env["A"].as_str()), (Some("s"), "1"));
}

#[test]
fn the_digest_is_of_the_canonical_form_however_the_body_was_spelt() {
    let one = decode(br#"{"call_id":"c","tool":"t","args":{"a":1,"b":"\u00e4"}}"#).unwrap();
    let other =
        decode("{ \"args\" : {\"b\":\"ä\", \"a\":1.0e0},\n\"tool\":\"t\",\"call_id\":\"c\"}".as_bytes()).unwrap();
    assert_eq!(one, other);
    assert_eq!(String::from_utf8_lossy(&one.canonical), r#"{"args":{"a":1,"b":"ä"},"call_id":"c","tool":"t"}"#);
    assert_eq!(one.digest, sha256(&one.canonical));
    assert_eq!(decode(&one.canonical).unwrap(), one);
}

#[test]
fn two_requests_are_the_same_without_id_deadline_labels_and_salt() {
    let plain = decoded(json!({}));
    let same = decoded(json!({"call_id": "other", "deadline_ms": 5, "labels": {"a": "b"}, "salt": "x"}));
    assert_eq!(same.identity, plain.identity);
    assert_ne!(same.digest, plain.digest);
    assert_eq!(plain.identity, sha256(br#"{"args":{"x":1},"tool":"show"}"#));
    for more in [json!({"env": {"A": "1"}}), json!({"limits": {"pids": 7}}), json!({"stdin": ""}), json!({"tool": "t"})]
    {
        assert_ne!(decoded(more.clone()).identity, plain.identity, "{more}");
    }
}

#[test]
fn the_call_id_stands_in_the_refusal_where_it_could_be_read() {
    let problem = decode(&body("show", json!({}), json!({"nonsense": 1}))).unwrap_err();
    assert_eq!(problem.call_id.as_deref(), Some("c-1"));
    assert_eq!(decode(&body("show", json!({}), json!({"call_id": "-"}))).unwrap_err().call_id, None);
    assert_eq!(decode(b"{").unwrap_err().call_id, None);
}

#[test]
fn what_is_no_object_or_lacks_a_member_is_refused() {
    for (text, word) in [
        ("", "not JSON"),
        ("[]", "an object"),
        ("null", "an object"),
        (r#"["c","t",{}]"#, "an object"),
        ("{}", "call_id"),
        (r#"{"call_id":"c"}"#, "tool"),
        (r#"{"call_id":"c","tool":"t"}"#, "args"),
        (r#"{"call_id":"c","tool":"t","args":{},"args":{}}"#, "twice"),
        ("\u{feff}{}", "byte order mark"),
    ] {
        refused(text.as_bytes(), word);
    }
}

#[test]
fn every_member_has_its_kind_and_null_is_none() {
    for (member, wrong) in [
        ("call_id", json!(1)),
        ("tool", json!({})),
        ("args", json!([])),
        ("limits", json!([1, 2])),
        ("mounts", json!({})),
        ("env", json!([["A", "1"]])),
        ("stdin", json!(["AA=="])),
        ("deadline_ms", json!("5")),
        ("labels", json!("x")),
        ("salt", json!(1)),
    ] {
        for wrong in [wrong, json!(null)] {
            let problem = decode(&body("show", json!({}), json!({member: wrong}))).expect_err(member);
            assert_eq!(problem.code, ErrorCode::InvalidRequest);
            assert!(problem.findings.iter().all(|one| one.detail.starts_with(member)), "{problem:?}");
        }
    }
}

#[test]
fn members_of_later_versions_are_refused_by_name_and_their_empty_forms_are_not() {
    for (member, value) in [
        ("key", json!("k")),
        ("session", json!("s")),
        ("files", json!([{"inside": "/a", "content": "x"}])),
        ("outputs", json!(["/a"])),
        ("expect_revision", json!("sha256:0")),
        ("expect_policy", json!("sha256:0")),
        ("preconditions", json!(["p"])),
    ] {
        refused_with(json!({member: value}), &format!("{member} is not in this version"));
        refused_with(json!({member: null}), &format!("{member} is not in this version"));
    }
    let writable = json!({"mounts": [{"host": "/a", "inside": "/b", "mode": "rw"}]});
    refused_with(writable, "mode \"rw\" of a mount is not in this version");
    assert!(decode(&body("t", json!({}), json!({"files": [], "outputs": [], "preconditions": []}))).is_ok());
}

#[test]
fn ablation_is_refused_with_its_own_code_and_an_empty_list_is_not() {
    for value in [json!(["seccomp"]), json!("seccomp"), json!(null), json!({})] {
        let problem = decode(&body("t", json!({}), json!({"ablate": value}))).unwrap_err();
        assert_eq!((problem.code, problem.status), (ErrorCode::AblationRefused, 403));
    }
    assert!(decode(&body("t", json!({}), json!({"ablate": []}))).is_ok());
}

#[test]
fn an_instance_in_ablation_mode_takes_known_controls_each_once() {
    let decode = |value| decode_in(Ablation::Taken, &body("t", json!({}), json!({"ablate": value})));
    let taken = decode(json!(["seccomp", "namespace.net"])).unwrap();
    assert_eq!(taken.request.ablate, ["seccomp", "namespace.net"]);
    let other = decode(json!(["seccomp"])).unwrap();
    assert_ne!(taken.identity, other.identity, "what is switched off belongs to what is asked for");
    for (value, word) in [
        (json!(["seccom"]), "ablate[0]"),
        (json!(["seccomp", "seccomp"]), "not named twice"),
        (json!(["gate.schema"]), "not in this version"),
        (json!("seccomp"), "an array"),
        (json!([1]), "the name of a control"),
        (json!(vec!["seccomp"; 30]), "at most 29"),
    ] {
        let problem = decode(value).unwrap_err();
        assert_eq!(problem.code, ErrorCode::InvalidRequest);
        assert!(problem.to_string().contains(word) || format!("{:?}", problem.findings).contains(word), "{problem:?}");
    }
}

#[test]
fn unknown_members_are_refused_at_every_level() {
    refused_with(json!({"nonsense": 1}), "nonsense");
    refused_with(json!({"Env": {}}), "Env");
    refused_with(json!({"limits": {"wall": 1}}), "wall");
    refused_with(json!({"mounts": [{"host": "/a", "inside": "/b", "mode": "ro", "more": 1}]}), "more");
    refused_with(json!({"stdin": {"base64": "", "more": 1}}), "stdin");
    assert!(decode(&body("t", json!({"nonsense": 1}), json!({}))).is_ok(), "arguments are the tool's to judge");
}

#[test]
fn limits_are_whole_numbers_within_what_is_sane() {
    for wrong in
        [json!(0), json!(-1), json!(1.5), json!("10"), json!(null), json!(true), json!(9_007_199_254_740_991_u64)]
    {
        for name in ["wall_ms", "memory_bytes", "pids", "output_keep_bytes"] {
            refused_with(json!({"limits": {name: wrong}}), &format!("limits.{name} must be a whole number from"));
        }
    }
    assert_eq!(decoded(json!({"limits": {"wall_ms": 1}})).request.limits.wall_ms, Some(1));
    assert_eq!(decoded(json!({"limits": {"wall_ms": 2.0}})).request.limits.wall_ms, Some(2));
}

#[test]
fn deadlines_are_at_least_one_millisecond_and_at_most_seven_days() {
    for wrong in [json!(0), json!(-5), json!(0.5), json!(604_800_001)] {
        refused_with(json!({"deadline_ms": wrong}), "deadline_ms must be a whole number");
    }
    assert!(decode(&body("t", json!({}), json!({"deadline_ms": 1}))).is_ok());
    assert!(decode(&body("t", json!({}), json!({"deadline_ms": 604_800_000}))).is_ok());
}

#[test]
fn variables_have_a_name_no_nul_and_fit_execve() {
    let set = |name: &str, value: &str| json!({"env": {name: value}});
    for (name, value) in [("", "x"), ("1A", "x"), ("A=B", "x"), ("A-B", "x"), ("Ä", "x"), ("A\u{0}", "x")] {
        refused_with(set(name, value), "must be named");
    }
    refused_with(set("A", "x\u{0}y"), "got a text with a NUL");
    refused_with(set("A", &"x".repeat(131_070)), "got 131072 bytes");
    refused_with(json!({"env": {"A": 1}}), "env[\"A\"] must be a text, got the number 1");
    for more in [set("_A1", ""), set("A", &"x".repeat(131_069)), set("a", "=\n")] {
        assert!(decode(&body("t", json!({}), more)).is_ok());
    }
}

#[test]
fn a_refusal_does_not_repeat_the_value_of_a_variable() {
    let problem = decode(&body("t", json!({}), json!({"env": {"1TOKEN": "hunter2"}, "salt": 1}))).unwrap_err();
    assert!(!serde_json::to_string(&problem).unwrap().contains("hunter2"));
}

#[test]
fn labels_are_few_short_and_without_control_characters() {
    let many = |n: usize| json!({"labels": (0..n).map(|i| (format!("l{i}"), json!("x"))).collect::<Map<_, _>>()});
    refused_with(many(33), "at most 32 labels");
    refused_with(json!({"labels": {"a": "x".repeat(257)}}), "labels[\"a\"]");
    refused_with(json!({"labels": {"x".repeat(257): ""}}), "at most 256 bytes");
    refused_with(json!({"labels": {"a": "\n"}}), "control characters");
    refused_with(json!({"labels": {"": "x"}}), "labels");
    refused_with(json!({"labels": {"a": 1}}), "labels");
    assert!(decode(&body("t", json!({}), many(32))).is_ok());
    assert!(decode(&body("t", json!({}), json!({"labels": {"x".repeat(256): "x".repeat(256)}}))).is_ok());
}

#[test]
fn mounts_are_few_absolute_and_not_over_the_cell_s_own_parts() {
    let mount = |host: &str, inside: &str| json!({"mounts": [{"host": host, "inside": inside, "mode": "ro"}]});
    for (host, inside, word) in [
        ("data", "/in", "mounts[0].host must be an absolute path"),
        ("/data/../etc", "/in", "\"/data/../etc\""),
        ("/data/", "/in", "mounts[0].host"),
        ("/data\u{0}", "/in", "mounts[0].host"),
        ("/data", "in", "mounts[0].inside must be an absolute path"),
        ("/data", "/in/../etc", "mounts[0].inside"),
        ("/data", "/", "mounts[0].inside must be a path that is not /"),
        ("/data", "/tmp", "not /tmp itself"),
        ("/data", "/proc/self", "mounts[0].inside"),
        ("/data", "/etc", "mounts[0].inside"),
        ("/data", "/usr/share/x", "mounts[0].inside"),
    ] {
        refused_with(mount(host, inside), word);
    }
    for (host, inside) in [("/", "/in"), ("/data", "/tmp/box"), ("/data", "/data"), ("/d..", "/home/me/.x")] {
        assert!(decode(&body("t", json!({}), mount(host, inside))).is_ok(), "{host} {inside}");
    }
    let many = |n: usize| json!({"mounts": (0..n).map(|i| json!({"host": "/d", "inside": format!("/m{i}"), "mode": "ro"})).collect::<Vec<_>>()});
    refused_with(many(65), "at most 64 mounts, got 65");
    assert!(decode(&body("t", json!({}), many(64))).is_ok());
    let long = |n: usize| json!({"mounts": (0..n).map(|i| json!({"host": format!("/{}", "d".repeat(4000)), "inside": format!("/m{i}"), "mode": "ro"})).collect::<Vec<_>>()});
    refused_with(long(23), "bytes of paths in all");
    assert!(decode(&body("t", json!({}), long(22))).is_ok());
}

#[test]
fn two_mounts_do_not_stand_at_one_place() {
    let two = |a: &str, b: &str| json!({"mounts": [{"host": "/x", "inside": a, "mode": "ro"}, {"host": "/y", "inside": b, "mode": "ro"}]});
    refused_with(two("/in", "/in"), "mounts[1].inside must be a place that no other mount has");
    assert!(decode(&body("t", json!({}), two("/in", "/in/b"))).is_ok());
}

#[test]
fn what_is_no_mount_says_which_one() {
    for wrong in [
        json!("/a:/b"),
        json!(["/a", "/b", "ro"]),
        json!({}),
        json!({"host": "/a", "inside": "/b"}),
        json!({"host": "/a", "inside": "/b", "mode": "wx"}),
    ] {
        let good = json!({"host": "/a", "inside": "/b", "mode": "ro"});
        refused_with(json!({"mounts": [good, wrong]}), "mounts[1]");
    }
}

#[test]
fn everything_that_is_wrong_is_listed() {
    let more =
        json!({"nonsense": 1, "key": "k", "limits": {"wall_ms": 0}, "labels": {"a": "\n"}, "ablate": ["seccomp"]});
    let problem = decode(&body("t", json!({}), more)).unwrap_err();
    assert_eq!((problem.code, problem.findings.len()), (ErrorCode::InvalidRequest, 5), "{problem:?}");
    assert_eq!(problem.findings.last().unwrap().code, ErrorCode::AblationRefused);
}

#[test]
fn a_body_of_four_mebibytes_is_read_and_a_larger_one_is_not() {
    let size = |n: usize| body("t", json!({}), json!({"stdin": "x".repeat(n)}));
    let around = size(0).len();
    assert!(decode(&size(BODY_MAX_BYTES - around)).is_ok());
    refused(&size(BODY_MAX_BYTES - around + 1), "bytes long");
}

proptest::proptest! {
    #[test]
    fn a_spoilt_request_is_a_refusal_or_a_request_whose_canonical_form_reads_the_same(
        at in 0_usize..200, gone in 0_usize..20, put in "[ -~\u{e4}\u{0}]{0,6}"
    ) {
        let mut text = body("show", json!({"x": [1, "a"]}), json!({"limits": {"wall_ms": 5}, "env": {"A": "1"},
            "mounts": [{"host": "/a", "inside": "/b", "mode": "ro"}], "stdin": {"base64": "AA=="}, "files": []}));
        let at = at.min(text.len());
        let end = (at + gone).min(text.len());
        text.splice(at..end, put.bytes());
        match decode(&text) {
            Ok(decoded) => proptest::prop_assert_eq!(decode(&decoded.canonical).unwrap(), decoded),
            Err(problem) => proptest::prop_assert!(!problem.findings.is_empty() && problem.findings[0].code == problem.code),
        }
    }
}
