//! `toolcell doctor` and `GET /v1/doctor` tell the truth: what they say of each control is what a call's answer then says,
//! what they say is missing is missing, and the one thing that they name is what helps.

use std::collections::BTreeMap;

use serde_json::Value;
use toolcell_tests::{Finished, Home, Instance, Need, Request, Setup, needs, run, toolcell};
use toolcell_types::doctor::{CheckState, DoctorReport, Proof};
use toolcell_types::{Answer, ControlId};

/// Controls of which nothing can be tried from inside, with why in the report.
const READ_BACK_ONLY: [&str; 1] = ["no-new-privs"];

/// The report on standard output, and how the command ended.
fn report_of(finished: &Finished) -> DoctorReport {
    serde_json::from_value(finished.json()).unwrap_or_else(|error| panic!("{error}: {}", finished.text()))
}

/// `doctor` with the flags that an instance of this setup has.
fn doctor(setup: Setup) -> (Home, Finished) {
    let home = setup.home();
    let finished = run(&mut home.doctor(&["--json"]));
    (home, finished)
}

/// State by control, as a call's answer tells it.
fn enforced_in(answer: &Answer) -> BTreeMap<String, (String, bool)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let item = |item: &Value| (text(&item["id"]), (text(&item["state"]), item["required"].as_bool().unwrap()));
    answer.controls.iter().map(item).collect()
}

fn told_by(report: &DoctorReport) -> BTreeMap<String, (String, bool)> {
    let state = |state: CheckState| serde_json::to_value(state).unwrap().as_str().unwrap().to_owned();
    report.controls.iter().map(|one| (one.id.to_string(), (state(one.state), one.required))).collect()
}

/// One by one: what was told and what a call then has.
pub(crate) fn same(report: &DoctorReport, answer: &Answer) {
    assert_eq!(told_by(report), enforced_in(answer));
    for control in &report.controls {
        let item = answer.controls.iter().find(|item| item["id"] == control.id.as_str()).unwrap();
        let verification = serde_json::to_value(control.verification).unwrap();
        assert_eq!(item["verification"], verification, "{}", control.id);
    }
}

/// Every control that is enforced was tried on both sides, or it is said why not.
pub(crate) fn proven(report: &DoctorReport) {
    for control in report.controls.iter().filter(|control| control.state == CheckState::Enforced) {
        let sides = (control.allowed.holds, control.forbidden.holds);
        if READ_BACK_ONLY.contains(&control.id.as_str()) {
            assert_eq!((control.proof, control.forbidden.holds), (Proof::ReadBack, None), "{control:?}");
            assert!(!control.forbidden.got.is_empty(), "it is said why: {control:?}");
        } else {
            assert_eq!((control.proof, sides), (Proof::TwoSided, (Some(true), Some(true))), "{control:?}");
            assert!(!control.forbidden.act.is_empty() && !control.forbidden.got.is_empty(), "{control:?}");
        }
    }
}

#[test]
fn what_doctor_says_of_each_control_is_what_a_call_then_has() {
    needs!(Need::Root);
    let (home, finished) = doctor(Setup::default());
    let report = report_of(&finished.expect_code(0));
    assert!(report.ready && report.serve.starts && report.is_root);
    assert_eq!(report.architecture, "x86_64");
    let ids: Vec<ControlId> = report.controls.iter().map(|control| control.id).collect();
    assert_eq!(ids, ControlId::ALL);
    proven(&report);
    assert!(home.is_bare(), "nothing of the trial stays: {:?}", home.dir());
    let instance = home.start();
    same(&report, &instance.call(&Request::exec(&["true"])));
}

#[test]
fn the_endpoint_tells_the_same_as_the_command_and_only_to_operators() {
    needs!(Need::Root);
    let (home, finished) = doctor(Setup::default());
    let command = report_of(&finished.expect_code(0));
    let instance: Instance = home.start();
    let response = instance.get("/v1/doctor");
    assert_eq!(response.status(), 200);
    let endpoint: DoctorReport = response.json();
    // Figures differ from survey to survey; what is said does not.
    assert_eq!(told_by(&endpoint), told_by(&command));
    assert_eq!(endpoint.warnings, command.warnings);
    assert_eq!((endpoint.ready, &endpoint.serve), (true, &command.serve));
    proven(&endpoint);
    let acts = |report: &DoctorReport| -> Vec<(String, String)> {
        report.controls.iter().map(|one| (one.allowed.act.clone(), one.forbidden.act.clone())).collect()
    };
    assert_eq!(acts(&endpoint), acts(&command));
    assert!(instance.receipts().len() == 1, "nothing of a survey is in the log");
}

#[test]
fn an_option_that_is_no_option_is_a_mistake_of_the_command_line() {
    let finished = run(&mut toolcell(&["doctor", "--accept-unavailable", "seccom"]));
    assert_eq!(finished.code, 2, "{}", finished.stderr);
}
