//! The list of cases from the field: each names tests that exist, or says why it cannot be shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toolcell_tests::{command, run, workspace_root};

/// One case of `tests/field-cases.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    threads: Vec<String>,
    trigger: String,
    behaviour: String,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    not_shown: String,
}

fn cases() -> BTreeMap<String, Case> {
    let path = workspace_root().join("tests/field-cases.toml");
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The tests of this binary, by its own list.
fn own_tests() -> BTreeSet<String> {
    let own = std::env::current_exe().unwrap();
    let list = run(command(own).args(["--list", "--format", "terse"])).expect_code(0).text();
    list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Whether a source file has a test of that name: the attribute stands right above the function.
fn is_unit_test(file: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(workspace_root().join(file)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}()");
    lines.windows(2).any(|pair| pair[0] == "#[test]" && pair[1].starts_with(&head))
}

/// What is wrong with a case.
fn faults(case: &Case, own: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let exists = |test: &str| match test.split_once(".rs::") {
        Some((file, name)) => is_unit_test(&format!("{file}.rs"), name),
        None => own.contains(test),
    };
    found.extend(case.tests.iter().filter(|test| !exists(test)).map(|test| format!("no such test: {test}")));
    if case.tests.is_empty() && case.not_shown.trim().is_empty() {
        found.push("neither tests nor a reason".to_owned());
    }
    if [&case.trigger, &case.behaviour].iter().any(|text| text.trim().is_empty()) || case.threads.is_empty() {
        found.push("no trigger, no behaviour or no thread".to_owned());
    }
    found
}

/// The sections of cases that this version answers for, first and last of each.
const SECTIONS: [(u32, u32); 10] =
    [(1, 13), (32, 47), (48, 52), (60, 69), (70, 74), (75, 79), (80, 87), (88, 96), (97, 100), (101, 104)];

#[test]
fn every_case_has_tests_that_exist_or_a_reason() {
    let (cases, own) = (cases(), own_tests());
    assert!(own.len() > 100, "the list is this binary's: {}", own.len());
    let expected = SECTIONS.into_iter().flat_map(|(first, last)| first..=last).map(|n| format!("T-{n:02}"));
    let missing: Vec<String> =
        expected.chain(["T-52a".into(), "T-52b".into()]).filter(|id| !cases.contains_key(id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let wrong: Vec<(&String, Vec<String>)> =
        cases.iter().map(|(id, case)| (id, faults(case, &own))).filter(|(_, faults)| !faults.is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_test_that_does_not_exist_and_a_case_without_any_are_found() {
    let own = BTreeSet::from(["field::a".to_owned()]);
    let case = |tests: &[&str], not_shown: &str| Case {
        threads: vec!["project#1".to_owned()],
        trigger: "x".to_owned(),
        behaviour: "y".to_owned(),
        tests: tests.iter().map(|test| (*test).to_owned()).collect(),
        not_shown: not_shown.to_owned(),
    };
    let unit = "tests/e2e/field_cases.rs::a_test_that_does_not_exist_and_a_case_without_any_are_found";
    assert_eq!(faults(&case(&["field::a", unit], ""), &own), Vec::<String>::new());
    assert_eq!(faults(&case(&[], "no such kernel"), &own), Vec::<String>::new());
    for wrong in [
        case(&["field::b"], ""),
        case(&["field::a", "tests/e2e/field_cases.rs::cases"], ""),
        case(&["no/such/file.rs::a"], "reason"),
        case(&[], " "),
        Case { threads: Vec::new(), ..case(&["field::a"], "") },
    ] {
        assert_eq!(faults(&wrong, &own).len(), 1, "{wrong:?}");
    }
}
