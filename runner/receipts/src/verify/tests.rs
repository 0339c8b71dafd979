use serde_json::{Value, json};
use toolcell_types::ControlState;

use super::*;
use crate::samples;

fn report_of(payload: &[u8]) -> Report {
    verify(&samples::signed(payload), samples::pem().as_bytes(), None)
}

/// The outcome with one member changed, signed again: a runner that says something wrong, not a forger.
fn changed(pointer: &str, value: Value) -> Vec<u8> {
    let mut payload: Value = serde_json::from_slice(&samples::payloads()[2]).unwrap();
    *payload.pointer_mut(pointer).unwrap() = value;
    payload.to_string().into_bytes()
}

fn failed<'a>(report: &'a Report, name: &str) -> &'a str {
    assert!(!report.holds(), "{report}");
    let check = report.check(name).unwrap();
    assert_eq!(check.mark, Mark::Failed, "{report}");
    &check.words
}

#[test]
fn the_golden_receipts_hold_with_the_request_however_it_is_written() {
    let [first, second, third] = samples::payloads();
    samples::golden("public.pem", samples::pem().as_bytes());
    samples::golden("request.json", samples::REQUEST.as_bytes());
    for (name, payload) in [("genesis.json", &first), ("intent.json", &second), ("outcome.json", &third)] {
        let envelope = samples::signed(payload);
        samples::golden(name, &envelope);
        let report = verify(&envelope, samples::pem().as_bytes(), None);
        assert!(report.holds(), "{report}");
        assert_eq!(report.check("request").unwrap().mark, Mark::Skipped);
    }
    let canonical = json::canonical(&json::parse_strict(samples::REQUEST.as_bytes()).unwrap()).unwrap();
    for request in [samples::REQUEST.as_bytes(), &canonical] {
        let report = verify(&samples::signed(&third), samples::pem().as_bytes(), Some(request));
        assert!(report.holds(), "{report}");
    }
    let report = verify(&samples::signed(&third), samples::pem().as_bytes(), None);
    samples::golden("outcome.report.txt", report.to_string().as_bytes());
}

#[test]
fn another_request_is_told_with_both_digests() {
    let envelope = samples::signed(&samples::payloads()[2]);
    let report = verify(&envelope, samples::pem().as_bytes(), Some(b"{\"tool\":\"python\"}"));
    assert!(failed(&report, "request").contains("the receipt is about sha256:"));
    let report = verify(&envelope, samples::pem().as_bytes(), Some(b"{\"a\":1,\"a\":1}"));
    assert!(failed(&report, "request").contains("stands twice"));
    let first = samples::signed(&samples::payloads()[0]);
    let report = verify(&first, samples::pem().as_bytes(), Some(samples::REQUEST.as_bytes()));
    failed(&report, "request");
}

#[test]
fn each_malformed_receipt_fails_where_it_is_wrong_and_nothing_later_is_claimed() {
    let [_, _, third] = samples::payloads();
    let good = String::from_utf8(samples::signed(&third)).unwrap();
    let value: Value = serde_json::from_str(&good).unwrap();
    let with = |pointer: &str, to: Value| {
        let mut changed = value.clone();
        *changed.pointer_mut(pointer).unwrap() = to;
        changed.to_string()
    };
    let payload = value["payload"].as_str().unwrap();
    let sig = value["signatures"][0]["sig"].as_str().unwrap();
    let flipped = format!("{}{}", if payload.starts_with('e') { 'f' } else { 'e' }, &payload[1..]);
    let tail = if sig.starts_with('A') { 'B' } else { 'A' };
    let vectors = [
        ("duplicate-payload", "envelope", good.replacen('{', "{\"payload\":\"e30=\",", 1)),
        ("line-feed-in-base64", "envelope", with("/payload", json!(format!("{payload}\n")))),
        ("exclamation-mark-in-base64", "envelope", with("/payload", json!(format!("{payload}!")))),
        ("other-payload-type", "envelope", with("/payloadType", json!("application/json"))),
        ("flipped-payload", "signature", with("/payload", json!(flipped))),
        ("flipped-signature", "signature", with("/signatures/0/sig", json!(format!("{tail}{}", &sig[1..])))),
        ("empty-signature", "signature", with("/signatures/0/sig", json!(""))),
        ("other-mode", "statement", resigned("/predicate/controls/mode", json!("ablation"))),
        ("other-executor", "statement", resigned("/predicate/runDetails/executor/id", json!("urn:example:other"))),
        ("other-statement", "statement", resigned("/_type", json!("https://in-toto.io/Statement/v0.1"))),
        ("other-predicate", "statement", resigned("/predicateType", json!("https://slsa.dev/provenance/v1"))),
        ("intent-after-outcome", "statement", resigned("/predicate/log/intentIndex", json!(2))),
        ("other-log", "statement", resigned("/predicate/log/origin", json!("toolcell/0000000000000000"))),
        ("effect-none-tree-not-gone", "statement", resigned("/predicate/outcome/tree_gone", json!(false))),
        ("no-subject", "statement", resigned("/subject", json!([]))),
        ("control-ablated", "controls", resigned("/predicate/controls/items/16/state", json!("ablated"))),
        ("control-missing", "controls", resigned("/predicate/controls/items/16/id", json!("seccom"))),
    ];
    for (name, check, envelope) in vectors {
        samples::golden(&format!("malformed/{check}/{name}.json"), envelope.as_bytes());
        let report = verify(envelope.as_bytes(), samples::pem().as_bytes(), Some(samples::REQUEST.as_bytes()));
        assert!(!failed(&report, check).is_empty());
        let later = NAMES.iter().skip_while(|name| **name != check).skip(1);
        for name in later.filter(|_| check != "controls") {
            assert_eq!(report.check(name).unwrap().mark, Mark::NotReached, "{name}: {report}");
        }
    }
}

fn resigned(pointer: &str, value: Value) -> String {
    String::from_utf8(samples::signed(&changed(pointer, value))).unwrap()
}

#[test]
fn a_key_that_did_not_sign_or_is_none_is_told() {
    let envelope = samples::signed(&samples::payloads()[2]);
    let other = PublicKey::of(&ed25519_dalek::SigningKey::from_bytes(&[9; 32])).to_pem().unwrap();
    let report = verify(&envelope, other.as_bytes(), None);
    assert!(failed(&report, "signature").contains("none of the 1 signatures"));
    assert_eq!(report.check("statement").unwrap().mark, Mark::NotReached);
    let report = verify(&envelope, b"no key", None);
    assert!(failed(&report, "key").contains("BEGIN PUBLIC KEY"));
}

#[test]
fn the_words_of_a_wrong_mode_name_member_and_both_values() {
    let report = report_of(&changed("/predicate/controls/mode", json!("ablation")));
    let words = failed(&report, "statement");
    assert_eq!(words, "predicate.controls.mode is \"ablation\", expected \"production\"");
}

#[test]
fn a_second_line_that_is_unavailable_holds_and_is_told_and_a_required_one_does_not() {
    let mut outcome = samples::outcome();
    let mut reports = samples::reports();
    for report in &mut reports {
        if report.id == ControlId::LandlockNet {
            report.state = ControlState::Unavailable;
        }
    }
    outcome.controls = crate::control_items(&reports);
    let [first, second, _] = samples::payloads();
    let place = samples::after(&[&first, &second]);
    let report = report_of(&outcome.draft().unwrap().finish(&place).unwrap());
    assert!(report.holds(), "{report}");
    assert!(report.check("controls").unwrap().words.contains("landlock.net"), "{report}");
    for report in &mut reports {
        if report.id == ControlId::Seccomp {
            report.state = ControlState::Unavailable;
        }
    }
    outcome.controls = crate::control_items(&reports);
    let report = report_of(&outcome.draft().unwrap().finish(&place).unwrap());
    assert!(failed(&report, "controls").contains("seccomp"));
}

#[test]
fn a_control_named_twice_or_without_its_kind_of_proof_is_told() {
    for (pointer, value) in [
        ("/predicate/controls/items/1/id", json!("namespace.user")),
        ("/predicate/controls/items/0/verification", json!("guessed")),
        ("/predicate/controls/items/0/required", json!("yes")),
        ("/predicate/controls/items/0", json!("namespace.user")),
    ] {
        failed(&report_of(&changed(pointer, value)), "controls");
    }
}

/// An outcome of ablation mode, with seccomp and the mount namespace off and what fell with that.
fn ablated() -> Outcome {
    let mut outcome = samples::outcome();
    outcome.definition.executor.experiment = Some("e-1".to_owned());
    outcome.definition.ablated = [ControlId::Seccomp, ControlId::NamespaceMount].into_iter().collect();
    let mut reports = samples::reports();
    for report in &mut reports {
        if [ControlId::Seccomp, ControlId::NamespaceMount, ControlId::TmpQuota].contains(&report.id) {
            report.state = ControlState::Ablated;
        }
    }
    outcome.controls = crate::control_items(&reports);
    outcome
}

fn placed(outcome: &Outcome) -> Vec<u8> {
    let [first, second, _] = samples::payloads();
    outcome.draft().unwrap().finish(&samples::after(&[&first, &second])).unwrap()
}

#[test]
fn a_receipt_of_ablation_mode_is_refused_unless_one_is_asked_for() {
    let payload = placed(&ablated());
    let words = failed(&report_of(&payload), "statement").to_owned();
    assert!(words.contains("e-1") && words.contains("namespace.mount, seccomp, tmp.quota"), "{words}");
    let report = verify_of(Mode::Ablation, &samples::signed(&payload), samples::pem().as_bytes(), None);
    assert!(report.holds(), "{report}");
    assert!(report.check("statement").unwrap().words.contains("ABLATION MODE"), "{report}");
    assert!(report.check("controls").unwrap().words.contains("SWITCHED OFF: namespace.mount, seccomp, tmp.quota"));
    let production = samples::signed(&samples::payloads()[2]);
    let report = verify_of(Mode::Ablation, &production, samples::pem().as_bytes(), None);
    assert!(failed(&report, "statement").contains("production mode"), "{report}");
}

#[test]
fn what_is_switched_off_has_to_be_said_everywhere_and_nothing_else_may_be_off() {
    let payload: Value = serde_json::from_slice(&placed(&ablated())).unwrap();
    assert_eq!(payload["predicate"]["controls"]["ablation"]["fell"], json!(["tmp.quota"]));
    assert_eq!(payload["predicate"]["runDetails"]["executor"]["id"], toolcell_types::EXECUTOR_ABLATION_ID);
    let item = |id: ControlId| format!("/predicate/controls/items/{}/state", id as usize);
    let facts = "/predicate/controls/ablation";
    for (pointer, to, check) in [
        (facts.to_owned(), json!(null), "statement"),
        (format!("{facts}/fell"), json!([]), "statement"),
        (format!("{facts}/ablated"), json!(["seccomp", "namespace.mount", "cpu-clock"]), "controls"),
        (format!("{facts}/ablated"), json!(["seccom"]), "statement"),
        (item(ControlId::Seccomp), json!("enforced"), "controls"),
        ("/predicate/controls/mode".to_owned(), json!("production"), "statement"),
        ("/predicate/runDetails/executor/id".to_owned(), json!(toolcell_types::EXECUTOR_ID), "statement"),
    ] {
        let mut wrong = payload.clone();
        *wrong.pointer_mut(&pointer).unwrap() = to;
        let envelope = samples::signed(wrong.to_string().as_bytes());
        let report = verify_of(Mode::Ablation, &envelope, samples::pem().as_bytes(), None);
        assert!(!failed(&report, check).is_empty(), "{pointer}: {report}");
    }
    // What neither was asked for nor falls with it.
    let mut outcome = ablated();
    outcome.definition.ablated = [ControlId::Seccomp].into_iter().collect();
    let envelope = samples::signed(&placed(&outcome));
    let report = verify_of(Mode::Ablation, &envelope, samples::pem().as_bytes(), None);
    assert!(failed(&report, "controls").contains("namespace.mount"), "{report}");
}
