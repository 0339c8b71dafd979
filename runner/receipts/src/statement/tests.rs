use serde_json::json;
use toolcell_types::{ControlReport, ErrorCode, Fact, LogPosition, PAYLOAD_MAX_BYTES, Sha256};

use super::*;
use crate::samples;

#[test]
fn the_payloads_are_the_golden_ones() {
    let [genesis, intent, outcome] = samples::payloads();
    samples::golden("genesis.payload.json", &genesis);
    samples::golden("intent.payload.json", &intent);
    samples::golden("outcome.payload.json", &outcome);
}

#[test]
fn what_is_read_is_what_was_written() {
    let [genesis, intent, outcome] = samples::payloads();
    let place = samples::after(&[]);
    assert_eq!(read(&genesis).unwrap(), Recorded::Genesis { genesis: samples::genesis(), log: place });
    let expected = Intent { planned: Vec::new(), ..samples::intent() };
    let place = samples::after(&[&genesis]);
    assert_eq!(read(&intent).unwrap(), Recorded::Intent { intent: Box::new(expected), log: place });
    let place = samples::after(&[&genesis, &intent]);
    assert_eq!(read(&outcome).unwrap(), Recorded::Outcome { outcome: Box::new(samples::outcome()), log: place });
}

#[test]
fn no_entry_stands_where_another_kind_belongs() {
    let [first, second, _] = samples::payloads();
    let (zero, one) = (samples::after(&[]), samples::after(&[&first]));
    let two = samples::after(&[&first, &second]);
    let misplaced = |result| matches!(result, Err(StatementError::Misplaced { .. }));
    assert!(misplaced(samples::genesis().draft().unwrap().finish(&one)));
    assert!(misplaced(samples::intent().draft().unwrap().finish(&zero)));
    assert!(misplaced(samples::outcome().draft().unwrap().finish(&zero)));
    assert!(misplaced(samples::outcome().draft().unwrap().finish(&one)));
    let late = Outcome { intent_index: 2, ..samples::outcome() };
    assert!(misplaced(late.draft().unwrap().finish(&two)));
    let of_genesis = Outcome { intent_index: 0, ..samples::outcome() };
    assert!(misplaced(of_genesis.draft().unwrap().finish(&two)));
}

#[test]
fn a_definition_that_leaves_no_room_for_the_outcome_is_refused_before_anything_runs() {
    let mut intent = samples::intent();
    for n in 0..64 {
        let host = format!("/srv/{n:0>300}");
        intent.definition.mounts.push(MountSpec { host, ..intent.definition.mounts[0].clone() });
    }
    let error = intent.draft().unwrap_err();
    assert!(matches!(error, StatementError::TooLarge { .. }), "{error}");
    assert_eq!(error.code(), Some(ErrorCode::InvalidRequest));
}

/// Everything as long as it can be while the intent is accepted.
fn largest() -> (Intent, Outcome) {
    let long = Facts::new().with("list", Fact::List(vec!["x".repeat(60); 8]));
    let mut intent = samples::intent();
    let mut n = 0_usize;
    loop {
        let label = (format!("label-{n}"), "v".repeat(128));
        intent.definition.labels.insert(label.0.clone(), label.1);
        if intent.draft().is_err() {
            intent.definition.labels.remove(&label.0);
            break;
        }
        n += 1;
    }
    intent.planned.iter_mut().for_each(|control| control.requested = long.clone());
    let report = |report: ControlReport| ControlReport { requested: long.clone(), observed: long.clone(), ..report };
    let reports: Vec<ControlReport> = samples::reports().into_iter().map(report).collect();
    let quotes = "\"\u{1}é".repeat(2000);
    let hit = LimitHit { limit: quotes.clone(), seen: quotes.clone() };
    let outcome = Outcome {
        definition: intent.definition.clone(),
        controls: crate::control_items(&reports),
        is_error: true,
        verdict: Verdict::StartFailed { stage: quotes.clone(), errno: quotes.clone() },
        limits_hit: vec![hit; 100],
        usage: serde_json::from_value(json!({
            "wall_us": u64::MAX, "cpu_user_us": u64::MAX, "cpu_system_us": u64::MAX, "throttled_us": u64::MAX,
            "memory_peak_bytes": u64::MAX, "pids_peak": u64::MAX, "oom_kills": u64::MAX, "forks_refused": u64::MAX,
            "stdout_bytes": u64::MAX, "stderr_bytes": u64::MAX, "left_running_killed": u64::MAX,
        }))
        .unwrap(),
        error: Some(ToolError {
            code: quotes.clone(),
            message: quotes.clone(),
            remedy: quotes.clone(),
            retryable: true,
            findings: vec![quotes; 100],
        }),
        ..samples::outcome()
    };
    (intent, outcome)
}

#[test]
fn the_outcome_of_an_accepted_intent_always_fits() {
    let (intent, outcome) = largest();
    assert!(intent.definition.labels.len() > 50);
    let place = LogPosition { index: u64::MAX, genesis: Some(Sha256([1; 32])), ..samples::after(&[]) };
    let payload = intent.draft().unwrap().finish(&place).unwrap();
    assert!(payload.len() <= PAYLOAD_MAX_BYTES);
    let payload = outcome.draft().unwrap().finish(&place).unwrap();
    assert!(payload.len() <= PAYLOAD_MAX_BYTES, "{}", payload.len());
}

#[test]
fn cut_texts_say_so() {
    let (_, outcome) = largest();
    let payload = outcome.draft().unwrap().finish(&samples::after(&[b"", b"x"])).unwrap();
    let value: Value = serde_json::from_slice(&payload).unwrap();
    let message = value["predicate"]["outcome"]["error"]["message"].as_str().unwrap();
    assert!(message.ends_with('…') && serde_json::to_string(message).unwrap().len() <= 512 + 2);
}

#[test]
fn an_outcome_that_contradicts_itself_is_refused() {
    let good = samples::outcome();
    let error = ToolError {
        code: "exited".to_owned(),
        message: String::new(),
        remedy: String::new(),
        retryable: true,
        findings: Vec::new(),
    };
    let channel = Definition { effect_channels: vec!["workspace".to_owned()], ..good.definition.clone() };
    let bad = [
        Outcome { tree_gone: false, ..good.clone() },
        Outcome { definition: channel.clone(), ..good.clone() },
        Outcome { effect: Effect::Applied, ..good.clone() },
        Outcome { effect: Effect::Unknown, tree_gone: false, ..good.clone() },
        Outcome { status: Status::Unknown, error: Some(error.clone()), ..good.clone() },
        Outcome { is_error: true, ..good.clone() },
        Outcome { error: Some(error.clone()), ..good.clone() },
        Outcome { started_on: None, ..good.clone() },
        Outcome { controls: Vec::new(), ..good.clone() },
        Outcome { stdout: Stream { dropped_bytes: 1, ..good.stdout.clone() }, ..good.clone() },
        Outcome { stdout: Stream { head_bytes: 4, ..good.stdout.clone() }, ..good.clone() },
    ];
    for outcome in bad {
        assert!(matches!(outcome.draft(), Err(StatementError::Inconsistent { .. })), "{outcome:?}");
    }
    let applied = Outcome { definition: channel, effect: Effect::Applied, ..good.clone() };
    assert!(applied.draft().is_ok());
    let lost = Outcome {
        status: Status::Ok,
        is_error: true,
        error: Some(error),
        verdict: Verdict::Lost,
        started_on: None,
        controls: Vec::new(),
        ..good
    };
    assert!(lost.draft().is_ok());
    assert_eq!((lost.state(), lost.is_retryable()), (CallState::Failed, true));
}

#[test]
fn a_payload_that_says_something_else_is_not_read() {
    let [first, second, third] = samples::payloads();
    let pointers = [
        "/_type",
        "/predicateType",
        "/predicate/runDetails/executor/id",
        "/predicate/controls/mode",
        "/predicate/log/origin",
        "/predicate/event",
        "/predicate/executionDefinition/executionType",
        "/predicate/authorization/decision",
        "/predicate/outcome/state",
        "/predicate/outcome/effect/value",
        "/predicate/runDetails/byproducts/0/name",
        "/subject/0/digest/sha256",
    ];
    for payload in [&first, &second, &third] {
        let good: Value = serde_json::from_slice(payload).unwrap();
        for pointer in pointers {
            let mut changed = good.clone();
            // The origin of an intent or outcome is compared by those who know the key.
            let free = pointer.ends_with("origin") && good["predicate"]["event"].is_null();
            if let Some(member) = changed.pointer_mut(pointer).filter(|_| !free) {
                *member = json!("ablation");
                assert!(read(changed.to_string().as_bytes()).is_err(), "{pointer}");
            }
        }
        let mut enrolled = good.clone();
        enrolled["predicate"]["enrolled"] = json!(true);
        assert!(read(enrolled.to_string().as_bytes()).is_err());
        let mut two = good.clone();
        let subject = two["subject"][0].clone();
        two["subject"] = json!([subject, subject]);
        assert!(read(two.to_string().as_bytes()).is_err());
        let mut more = good;
        more["predicate"]["telemetry"] = json!({"traceId": "00"});
        assert!(read(more.to_string().as_bytes()).is_ok());
    }
}

#[test]
fn a_duplicate_member_in_a_payload_is_not_read() {
    let [_, _, third] = samples::payloads();
    let text = String::from_utf8(third).unwrap();
    let twice = text.replacen("\"mode\":\"production\"", "\"mode\":\"ablation\",\"mode\":\"production\"", 1);
    assert_ne!(twice, text);
    assert!(matches!(read(twice.as_bytes()), Err(StatementError::Json { .. })));
}

#[test]
fn build_digests_are_recognised_by_their_form() {
    let hex = "ab".repeat(32);
    assert_eq!(BuildDigest::parse(&format!("sha256:{hex}")), Some(BuildDigest::Sha256(hex.clone())));
    assert_eq!(BuildDigest::parse(&hex[..40]), Some(BuildDigest::GnuBuildId(hex[..40].to_owned())));
    let named = format!("gnu-build-id:{}", &hex[..40]);
    assert_eq!(BuildDigest::parse(&named), Some(BuildDigest::GnuBuildId(hex[..40].to_owned())));
    for bad in ["", "abc", "sha256:abcd", &"AB".repeat(20), "sha1:0000000000000000"] {
        assert_eq!(BuildDigest::parse(bad), None, "{bad}");
    }
}

#[test]
fn looking_over_finds_the_same_as_reading_and_only_counts_the_controls() {
    let read_whole = |payload: &[u8]| (read(payload), look_over(payload));
    let [_, _, payload] = samples::payloads();
    let (Ok(Recorded::Outcome { outcome, log }), Ok(Recorded::Outcome { outcome: seen, log: place })) =
        read_whole(&payload)
    else {
        panic!()
    };
    assert_eq!(seen.controls, vec![serde_json::Value::Null; outcome.controls.len()]);
    assert!(!outcome.controls.is_empty() && outcome.controls.iter().all(serde_json::Value::is_object));
    assert_eq!((Outcome { controls: outcome.controls.clone(), ..*seen }, place), (*outcome, log));
    for broken in [&payload[1..], &payload[..payload.len() - 1], b"{}"] {
        let (whole, seen) = read_whole(broken);
        assert_eq!(whole.unwrap_err().to_string(), seen.unwrap_err().to_string());
    }
}

#[test]
fn an_object_that_a_reader_gives_another_meaning_is_refused() {
    let [_, _, payload] = samples::payloads();
    let with = |name: &str| {
        let mut statement: serde_json::Value = serde_json::from_slice(&payload).unwrap();
        statement["predicate"]["outcome"]["data"] = json!({"x": {name: "{\"a\":1,\"a\":-0}"}});
        serde_json::to_string(&statement).unwrap()
    };
    let hidden = with("$serde_json::private::RawValue");
    assert!(matches!(read(hidden.as_bytes()), Err(StatementError::Json { .. })));
    assert!(matches!(look_over(hidden.as_bytes()), Err(StatementError::Json { .. })));
    assert!(read(with("RawValue").as_bytes()).is_ok(), "the control");
}
