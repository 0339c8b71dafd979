use serde_json::json;
use toolcell_types::Verification;
use toolcell_types::plan::PlanUsage;

use super::*;

fn report(id: ControlId, state: ControlState) -> ControlReport {
    let observed = match id.as_str() {
        "landlock.fs" => Facts::new().with("make_file", "EACCES"),
        "landlock.net" if state == ControlState::Unavailable => Facts::new().with("bind_tcp", "not in this kernel"),
        "landlock.net" => Facts::new().with("bind_tcp", "EACCES"),
        "landlock.scope" => Facts::new().with("abstract_socket", "EPERM").with("signal", "EPERM"),
        "userns.nested" => Facts::new().with("unshare_with_all_capabilities", "ENOSPC"),
        _ => Facts::new(),
    };
    let verification = Verification::ReadBack;
    ControlReport { id, state, verification, required: true, requested: Facts::new(), observed }
}

fn ended(cause: EndCause, stdout: Vec<u8>) -> Ended {
    let usage = PlanUsage { cpu_user_us: Some(60_000), throttled_us: Some(9), ..PlanUsage::default() };
    Ended {
        controls: ControlId::ALL.into_iter().map(|id| report(id, ControlState::Enforced)).collect(),
        report: EndReport { cause, limits_hit: Vec::new(), usage, tree_gone: true },
        written: u64::try_from(stdout.len()).unwrap(),
        stdout,
        stderr: String::new(),
    }
}

fn boxed(cause: EndCause, stdout: Vec<u8>) -> Box<Ended> {
    Box::new(ended(cause, stdout))
}

fn trial(id: ControlId) -> Trial {
    Trial { id, allowed: Side::tried("a", "it worked", true), forbidden: Side::tried("f", "EPERM", true) }
}

fn program_says(trials: &[Trial]) -> Built {
    Built::Yes(boxed(EndCause::Exited(0), serde_json::to_vec(trials).unwrap()))
}

fn all_trials() -> Vec<Trial> {
    ControlId::ALL.into_iter().map(trial).collect()
}

fn cells(probe: Built) -> Vec<(SurveyAct, Built)> {
    vec![
        (SurveyAct::Probe, probe),
        (SurveyAct::Sleep, Built::Yes(boxed(EndCause::WallLimit, Vec::new()))),
        (SurveyAct::Spin, Built::Yes(boxed(EndCause::CpuLimit, Vec::new()))),
        (SurveyAct::Flood, Built::Yes(boxed(EndCause::OutputLimit, vec![b'x'; 4096]))),
    ]
}

fn checks(cells: &[(SurveyAct, Built)], accepted: &[ControlId]) -> Vec<ControlCheck> {
    let host = HostFacts { machine: "x86_64".into(), release: "6.1.0".into(), ..HostFacts::default() };
    assess(&Looked { host: &host, is_root: true, accepted, known: &[], cells })
}

fn one(checks: &[ControlCheck], id: ControlId) -> &ControlCheck {
    checks.iter().find(|check| check.id == id).unwrap()
}

#[test]
fn with_both_sides_seen_everything_is_enforced() {
    let checks = checks(&cells(program_says(&all_trials())), &[]);
    assert_eq!(checks.iter().map(|check| check.id).collect::<Vec<_>>(), ControlId::ALL);
    for check in &checks {
        assert_eq!((check.state, check.proof), (CheckState::Enforced, Proof::TwoSided), "{check:?}");
        assert_eq!((&check.reason, &check.remedy), (&None, &None));
    }
}

#[test]
fn what_gets_through_is_unavailable_whatever_was_read_back() {
    let mut trials = all_trials();
    trials.iter_mut().find(|trial| trial.id == ControlId::Seccomp).unwrap().forbidden =
        Side::tried("unshare(0)", "it worked", false);
    let checks = checks(&cells(program_says(&trials)), &[]);
    let seccomp = one(&checks, ControlId::Seccomp);
    assert_eq!((seccomp.state, seccomp.proof), (CheckState::Unavailable, Proof::ReadBack));
    assert!(seccomp.reason.as_ref().unwrap().contains("unshare(0): it worked"), "{seccomp:?}");
}

#[test]
fn a_broken_instrument_is_no_pass() {
    let mut trials = all_trials();
    trials.iter_mut().find(|trial| trial.id == ControlId::Seccomp).unwrap().allowed = Side::tried("getpid", "?", false);
    let checks = checks(&cells(program_says(&trials)), &[]);
    assert_eq!(one(&checks, ControlId::Seccomp).state, CheckState::Unknown);
}

#[test]
fn what_was_not_tried_is_only_read_back() {
    let checks = checks(&cells(program_says(&[])), &[]);
    let seccomp = one(&checks, ControlId::Seccomp);
    assert_eq!((seccomp.state, seccomp.proof), (CheckState::Enforced, Proof::ReadBack));
    assert_eq!((seccomp.allowed.holds, seccomp.forbidden.holds), (None, None));
    assert_eq!(one(&checks, ControlId::LandlockFs).proof, Proof::TwoSided, "that is the stage's own probe");
}

#[test]
fn where_no_program_comes_to_its_end_nothing_is_known_whatever_reads_back_well() {
    for probe in [
        Built::Yes(boxed(EndCause::Exited(0), b"{".to_vec())),
        Built::Yes(boxed(EndCause::Exited(1), Vec::new())),
        Built::Yes(boxed(EndCause::StartFailed { stage: "exec".into(), errno: 13 }, Vec::new())),
    ] {
        let checks = checks(&cells(probe), &[]);
        for check in &checks {
            assert_ne!(check.state, CheckState::Enforced, "{check:?}");
            assert!(check.remedy.is_some() && check.reason.is_some(), "{check:?}");
        }
        assert_eq!(one(&checks, ControlId::Seccomp).state, CheckState::Unknown);
    }
}

#[test]
fn limits_that_no_program_ran_into_are_not_proven() {
    let unstarted = || Built::Yes(boxed(EndCause::StartFailed { stage: "exec".into(), errno: 13 }, Vec::new()));
    let checks = checks(&SurveyAct::ALL.map(|act| (act, unstarted())), &[]);
    for id in [ControlId::OutputCap, ControlId::WallClock, ControlId::CpuClock, ControlId::CgroupCpu] {
        let check = one(&checks, id);
        assert_eq!((check.state, check.proof), (CheckState::Unknown, Proof::ReadBack), "{check:?}");
    }
}

#[test]
fn a_limit_that_does_not_bite_is_unavailable() {
    let mut cells = cells(program_says(&all_trials()));
    for (act, id) in [
        (SurveyAct::Sleep, ControlId::WallClock),
        (SurveyAct::Spin, ControlId::CpuClock),
        (SurveyAct::Flood, ControlId::OutputCap),
    ] {
        let at = cells.iter().position(|(known, _)| *known == act).unwrap();
        let right = std::mem::replace(&mut cells[at].1, Built::Yes(boxed(EndCause::Exited(0), Vec::new())));
        let checks = checks(&cells, &[]);
        assert_eq!(one(&checks, id).state, CheckState::Unavailable, "{id}");
        cells[at].1 = right;
    }
    let mut unthrottled = ended(EndCause::CpuLimit, Vec::new());
    unthrottled.report.usage.throttled_us = Some(0);
    cells[2].1 = Built::Yes(Box::new(unthrottled));
    assert_eq!(one(&checks(&cells, &[]), ControlId::CgroupCpu).state, CheckState::Unavailable);
    // 60 ms of processor time in two seconds are less than a tenth.
    let mut starved = ended(EndCause::CpuLimit, Vec::new());
    (starved.report.usage.throttled_us, starved.report.usage.wall_us) = (Some(0), Some(2_000_000));
    cells[2].1 = Built::Yes(Box::new(starved));
    let starved = checks(&cells, &[]);
    let share = one(&starved, ControlId::CgroupCpu);
    assert_eq!((share.state, share.proof, share.forbidden.holds), (CheckState::Enforced, Proof::ReadBack, None));
}

#[test]
fn a_second_line_that_the_kernel_lacks_is_not_required_and_names_the_kernel_that_has_it() {
    let mut probe = ended(EndCause::Exited(0), serde_json::to_vec(&all_trials()).unwrap());
    probe.controls.retain(|control| control.id != ControlId::LandlockNet);
    probe.controls.push(report(ControlId::LandlockNet, ControlState::Unavailable));
    let checks = checks(&cells(Built::Yes(Box::new(probe))), &[]);
    let net = one(&checks, ControlId::LandlockNet);
    assert_eq!((net.state, net.required, net.allowed.holds), (CheckState::Unavailable, false, None));
    assert!(net.remedy.as_ref().unwrap().contains("6.7"), "{net:?}");
}

#[test]
fn where_no_cell_can_be_built_its_step_s_control_is_missing_and_the_rest_unknown() {
    let fault = LaunchFault::Stage { stage: "mounts".into(), errno: 1, detail: "make a procfs: EPERM (item 0)".into() };
    let checks = checks(&[(SurveyAct::Probe, Built::No(fault))], &[ControlId::Seccomp]);
    for check in &checks {
        let expected = if check.id == ControlId::ProcMasked { CheckState::Unavailable } else { CheckState::Unknown };
        assert_eq!((check.state, check.proof), (expected, Proof::None));
        assert!(check.remedy.as_ref().unwrap().contains("/proc"), "{check:?}");
        assert_eq!((&check.observed, check.verification), (&json!({}), None));
    }
    assert!(!one(&checks, ControlId::Seccomp).required && one(&checks, ControlId::ProcMasked).required);
}

#[test]
fn what_is_known_to_be_missing_says_why() {
    let host = HostFacts::default();
    let known = [(ControlId::CgroupMemory, remedies::no_groups("there is none", false, &HostFacts::default()))];
    let cells = [(SurveyAct::Probe, Built::Unseen("the launcher is gone".into()))];
    let checks = assess(&Looked { host: &host, is_root: false, accepted: &[], known: &known, cells: &cells });
    let memory = one(&checks, ControlId::CgroupMemory);
    assert_eq!(memory.state, CheckState::Unavailable);
    assert_eq!(memory.remedy.as_deref(), Some(known[0].1.remedy.as_str()));
    assert_eq!(one(&checks, ControlId::Seccomp).state, CheckState::Unknown);
}
