//! `toolcell doctor` and `GET /v1/doctor` tell the truth: what they say of each control is what a call's answer then says,
//! what they say is missing is missing, and the one thing that they name is what helps.

mod missing;
mod rootless;

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use toolcell_tests::{
    Connection, Finished, Home, Instance, Live, Need, Process, Request, Setup, command, eventually, needs, run,
    toolcell, toolcell_path,
};
use toolcell_types::doctor::{CheckState, DoctorReport, Proof};
use toolcell_types::{Answer, ControlId, ErrorCode, Verdict};

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
        // On a machine that is too busy to give a cell its share, there is nothing to hold back.
        let is_starved = control.id.as_str() == "cgroup.cpu" && control.forbidden.got.contains("too busy");
        if is_starved || READ_BACK_ONLY.contains(&control.id.as_str()) {
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
    let acts = |report: &DoctorReport| -> Vec<(ControlId, Proof, String)> {
        report.controls.iter().map(|one| (one.id, one.proof, one.allowed.act.clone())).collect()
    };
    assert_eq!(acts(&endpoint), acts(&command));
    assert!(instance.receipts().len() == 1, "nothing of a survey is in the log");
}

#[test]
fn an_option_that_is_no_option_is_a_mistake_of_the_command_line() {
    let finished = run(&mut toolcell(&["doctor", "--accept-unavailable", "seccom"]));
    assert_eq!(finished.code, 2, "{}", finished.stderr);
}

#[test]
fn whoever_is_no_operator_does_not_get_the_report() {
    needs!(Need::Root);
    let instance = Setup::default().flags(&["--socket-mode", "0666"]).start();
    let mut stranger = Connection::open_as(&instance.socket(), (65_534, 65_534)).unwrap();
    let refused = stranger.ask("GET", "/v1/doctor", &[], b"").unwrap();
    let problem = refused.problem(ErrorCode::RoleDenied);
    assert_eq!(refused.status(), 403, "{problem:?}");
    let odd = instance.get("/v1/doctor?verbose=1");
    assert!(odd.problem(ErrorCode::InvalidRequest).detail.contains("verbose"));
    assert_eq!(instance.get("/v1/doctor").status(), 200, "the control");
}

#[test]
fn many_who_ask_at_once_share_one_survey_and_calls_go_on_beside_it() {
    needs!(Need::Root);
    let instance = Instance::start();
    let bodies: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| instance.get("/v1/doctor"))).collect();
        let call = scope.spawn(|| instance.call(&Request::exec(&["true"])));
        assert_eq!(call.join().unwrap().verdict, Verdict::Exited { exit_code: 0 });
        asking.into_iter().map(|one| one.join().unwrap().body).collect()
    });
    let different: std::collections::BTreeSet<&Vec<u8>> = bodies.iter().collect();
    assert_eq!(different.len(), 1, "figures differ from survey to survey, so this was one");
    assert_eq!(instance.cell_groups(), Vec::<std::path::PathBuf>::new(), "nothing of it stays");
}

#[test]
fn an_instance_that_serves_already_is_told_by_its_process_as_ready_and_left_alone() {
    needs!(Need::Root);
    let instance = Instance::start();
    let launcher = instance.launcher().pid;
    let report = report_of(&run(&mut instance.home().doctor(&["--json"])).expect_code(0));
    assert!(!report.serve.starts && report.ready);
    assert_eq!(report.serve.served_by, i32::try_from(launcher).ok());
    let (reason, remedy) = (report.serve.reason.as_ref().unwrap(), report.serve.remedy.as_ref().unwrap());
    assert!(reason.contains(&format!("process {launcher} serves {}", instance.socket().display())), "{reason}");
    assert!(remedy.contains("/v1/doctor") && !remedy.contains("kill"), "{remedy}");
    // All else is seen as if it were free.
    same(&report, &instance.call(&Request::exec(&["true"])));
    proven(&report);
}

/// What a killed one leaves holds a private key.
#[test]
fn what_a_killed_doctor_leaves_goes_with_the_next() {
    needs!(Need::Root);
    let home = Setup::default().home();
    let left = || -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(home.dir()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_string_lossy().contains(".toolcell-doctor-")).collect()
    };
    let killed = Live::start(&mut home.doctor(&["--json"]));
    let trial =
        eventually("the trial's key", || left().pop().filter(|path| path.join("state/signer/public.pem").exists()));
    killed.signal(Signal::SIGKILL);
    assert_ne!(killed.finish().code, 0);
    assert_eq!(left(), std::slice::from_ref(&trial), "the control: it stays");
    let of_trial = || {
        let name = trial.to_string_lossy().into_owned();
        Process::all().into_iter().filter(move |process| process.line.contains(&name) && process.state != 'Z')
    };
    // One whose instance still runs is left alone.
    let report = report_of(&run(&mut home.doctor(&["--json"])).expect_code(0));
    assert!(report.ready);
    assert!(of_trial().next().is_some() && trial.exists());
    for process in of_trial() {
        let pid = Pid::from_raw(i32::try_from(process.pid).unwrap());
        nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap_or_default();
    }
    eventually("the trial's instance to end", || of_trial().next().is_none().then_some(()));
    assert_eq!(run(&mut home.doctor(&["--json"])).code, 0);
    assert_eq!(left(), Vec::<std::path::PathBuf>::new());
}

/// With the state of one and a socket of its own there is no start, and no call runs there.
#[test]
fn a_state_that_is_in_use_is_told_by_its_process_and_ending_it_is_not_the_first_thing() {
    needs!(Need::Root);
    let instance = Instance::start();
    let launcher = instance.launcher().pid;
    let socket = instance.home().dir().join("other");
    let mut line = instance.home().doctor(&["--json"]);
    let words: Vec<_> =
        line.get_args().map(|word| if word == instance.socket() { socket.as_os_str() } else { word }).collect();
    let words: Vec<_> = words.into_iter().map(std::ffi::OsStr::to_owned).collect();
    line = command(line.get_program());
    let report = report_of(&run(line.args(words)).expect_code(1));
    let reason = report.serve.reason.unwrap();
    assert!(reason.contains("in use by") && reason.contains(&format!("process {launcher}")), "{reason}");
    let remedy = report.serve.remedy.unwrap();
    assert!(remedy.starts_with("give this one a --state") && remedy.contains(&format!("kill {launcher}")), "{remedy}");
    assert!(!report.ready && report.serve.served_by.is_none());
}

#[test]
fn a_place_that_cannot_be_one_is_told_as_serve_tells_it() {
    needs!(Need::Root);
    let home = Setup::default().home();
    std::fs::write(home.socket(), "letter").unwrap();
    let report = report_of(&run(&mut home.doctor(&["--json"])).expect_code(1));
    assert!(report.serve.reason.unwrap().contains("is there and is no socket"));
    assert_eq!(std::fs::read(home.socket()).unwrap(), b"letter");
    std::fs::remove_file(home.socket()).unwrap();
    std::fs::create_dir(home.state()).unwrap();
    std::fs::write(home.state().join("diary"), "mine").unwrap();
    let report = report_of(&run(&mut home.doctor(&["--json"])).expect_code(1));
    assert!(report.serve.reason.unwrap().contains("holds other files and no toolcell state"));
    let names: Vec<_> = std::fs::read_dir(home.state()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["diary"], "nothing was made in it");
}

/// A program that nobody but root may execute cannot be tried in a cell, which is said; what is read back still holds.
#[test]
fn a_program_that_a_cell_cannot_execute_is_told_and_proves_nothing_from_inside() {
    use std::os::unix::fs::PermissionsExt as _;
    needs!(Need::Root);
    let home = Setup::default().home();
    let program = home.dir().join("toolcell");
    std::fs::copy(toolcell_path(), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let line = home.doctor(&["--json"]);
    let report = report_of(&run(command(&program).args(line.get_args())).expect_code(1));
    assert!(!report.ready && report.controls.iter().all(|control| control.state != CheckState::Enforced), "{report:?}");
    let seccomp = report.controls.iter().find(|control| control.id.as_str() == "seccomp").unwrap();
    assert_eq!(seccomp.state, CheckState::Unknown);
    assert!(seccomp.remedy.as_deref().unwrap().contains("chmod 755"), "{seccomp:?}");
    let net = report.controls.iter().find(|control| control.id.as_str() == "namespace.net").unwrap();
    assert!(net.forbidden.got.contains("could not be started: exec: EACCES"), "{net:?}");
}

#[test]
fn the_table_names_every_control_in_a_hundred_columns_and_ends_with_the_verdict() {
    needs!(Need::Root);
    let home = Setup::default().home();
    let text = run(&mut home.doctor(&[])).expect_code(0).text();
    let is_named = |id: &ControlId| text.lines().any(|line| line.split_whitespace().next() == Some(id.as_str()));
    assert!(ControlId::ALL.iter().all(is_named), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.lines().next().unwrap().contains("x86_64"), "{text}");
    assert_eq!(text.lines().last(), Some("ready: `serve` starts with these options, and calls run"));
}
