//! The report of `toolcell doctor`, for a terminal of 100 columns.

use toolcell_types::doctor::{CheckState, ControlCheck, DoctorReport, HostWarning, Proof, Side};

use super::clean;
use super::lines::wrapped;

/// The whole report: a table of the controls, what is missing with the one thing to do, settings of the host, the verdict.
pub(crate) fn doctor(report: &DoctorReport) -> String {
    let user = if report.is_root { "as root" } else { "without root" };
    let container = report.container.as_ref().map(|mark| format!(", in a container: {mark}")).unwrap_or_default();
    let head =
        format!("toolcell {} on {}, Linux {}, {user}{container}", report.version, report.architecture, report.kernel);
    let mut text = wrapped(&clean(&head), 0, 2);
    text.push('\n');
    // What keeps `serve` from starting stands first, and once; what was seen all the same follows.
    let is_first = !report.serve.starts && !report.ready;
    if is_first {
        text.push_str(&verdict(report));
        if report.controls.iter().all(|control| control.proof == Proof::None) {
            text.push_str(&unseen(&report.controls));
            text.push_str(&settings(&report.warnings));
            return text;
        }
        text.push('\n');
    }
    text.push_str(&table(&report.controls));
    text.push_str(&missing(&report.controls, report.serve.reason.as_deref().filter(|_| is_first)));
    text.push_str(&settings(&report.warnings));
    if !is_first {
        text.push('\n');
        text.push_str(&verdict(report));
    }
    text
}

/// Of which controls something is known although no cell was there: they are missing by what keeps `serve` from starting.
fn unseen(controls: &[ControlCheck]) -> String {
    let missing = controls.iter().filter(|control| control.state == CheckState::Unavailable);
    let missing: Vec<&str> = missing.map(|control| control.id.as_str()).collect();
    let rest = "there was no cell to see the controls in";
    let words = if missing.is_empty() {
        rest.to_owned()
    } else {
        format!("missing by it: {}; of the rest {rest}", missing.join(", "))
    };
    wrapped(&words, 2, 4)
}

fn settings(warnings: &[HostWarning]) -> String {
    let mut text = String::new();
    if !warnings.is_empty() {
        text.push_str("\nSettings of this machine that take away second lines:\n");
        warnings.iter().for_each(|warning| text.push_str(&setting(warning)));
    }
    text
}

fn state(state: CheckState) -> &'static str {
    match state {
        CheckState::Enforced => "enforced",
        CheckState::Unavailable => "unavailable",
        CheckState::Unknown => "unknown",
    }
}

fn proof(proof: Proof) -> &'static str {
    match proof {
        Proof::TwoSided => "two-sided",
        Proof::ReadBack => "read-back",
        Proof::None => "-",
    }
}

/// One line a control, and more where what was tried needs them.
fn table(controls: &[ControlCheck]) -> String {
    const TRIED: usize = 47;
    let mut text =
        format!("{:<21}  {:<11}  {:<9}  {}\n", "CONTROL", "STATE", "PROVEN", "WHAT MUST FAIL, AND WHAT CAME OF IT");
    for control in controls {
        let start = format!("{:<21}  {:<11}  {:<9}  ", control.id.as_str(), state(control.state), proof(control.proof));
        let tried = wrapped(&clean(&tried(&control.forbidden)), TRIED, TRIED);
        text.push_str((start + tried.get(TRIED..).unwrap_or("\n")).trim_end());
        text.push('\n');
    }
    text
}

fn tried(side: &Side) -> String {
    match (side.holds, side.act.as_str()) {
        (Some(_), act) => format!("{act}: {}", side.got),
        (None, _) => format!("not tried: {}", side.got),
    }
}

/// What is not enforced, together where reason and remedy are the same; `told` is a reason that stands above already.
fn missing(controls: &[ControlCheck], told: Option<&str>) -> String {
    let mut groups: Vec<(Vec<String>, &ControlCheck)> = Vec::new();
    for control in controls.iter().filter(|control| control.state != CheckState::Enforced) {
        let name = format!("{}{}", control.id, if control.required { "" } else { " (not required)" });
        let same = |(_, known): &&mut (Vec<String>, &ControlCheck)| {
            (&known.reason, &known.remedy, known.state) == (&control.reason, &control.remedy, control.state)
        };
        match groups.iter_mut().find(same) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], control)),
        }
    }
    let mut text = String::new();
    for (names, control) in groups {
        let word = state(control.state);
        text.push_str(&format!("\n{}", wrapped(&format!("{}: {word}", names.join(", ")), 0, 2)));
        if told.is_some() && control.reason.as_deref() == told {
            text.push_str(&wrapped("why, and what to do: see above", 2, 7));
            continue;
        }
        if let Some(reason) = &control.reason {
            text.push_str(&wrapped(&format!("why: {}", clean(reason)), 2, 7));
        }
        if let Some(remedy) = &control.remedy {
            text.push_str(&wrapped(&format!("do:  {}", clean(remedy)), 2, 7));
        }
    }
    text
}

fn setting(warning: &HostWarning) -> String {
    let head = format!("{} is {}: {}", warning.setting, clean(&warning.value), warning.removes);
    let mut text = wrapped(&head, 2, 4);
    text.push_str(&wrapped(&format!("in a cell: {}", warning.instead), 4, 6));
    text.push_str(&wrapped(&format!("do: {}", warning.remedy), 4, 6));
    text
}

fn verdict(report: &DoctorReport) -> String {
    if let (true, Some(reason)) = (report.ready && report.serve.served_by.is_some(), &report.serve.reason) {
        let mut text = wrapped(&format!("ready: {}, and calls run there", clean(reason)), 0, 2);
        if let Some(remedy) = &report.serve.remedy {
            text.push_str(&wrapped(&format!("do: {}", clean(remedy)), 2, 4));
        }
        return text;
    }
    if report.ready {
        return wrapped("ready: `serve` starts with these options, and calls run", 0, 2);
    }
    let mut text = String::new();
    if let (false, Some(reason)) = (report.serve.starts, &report.serve.reason) {
        text.push_str(&wrapped(&format!("not ready: `serve` does not start: {}", clean(reason)), 0, 2));
        if let Some(remedy) = &report.serve.remedy {
            text.push_str(&wrapped(&format!("do: {}", clean(remedy)), 2, 4));
        }
    }
    let doubtful: Vec<&str> = report.doubtful().map(|control| control.id.as_str()).collect();
    let has_missing = report.missing().next().is_some();
    if !doubtful.is_empty() {
        let words = format!("not ready: it cannot be shown that these hold in a cell: {}", doubtful.join(", "));
        text.push_str(&wrapped(&words, 0, 2));
    } else if report.serve.starts && has_missing {
        let words = "not ready: `serve` starts, and calls do not run, as required controls are missing (see above)";
        text.push_str(&wrapped(words, 0, 2));
    }
    if !report.go_without.is_empty() {
        let all: Vec<&str> = report.go_without.iter().map(|id| id.as_str()).collect();
        let words = format!("or do without, which every receipt then says: --accept-unavailable={}", all.join(","));
        text.push_str(&wrapped(&words, 2, 4));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcell_types::ControlId;
    use toolcell_types::doctor::ServeCheck;

    use super::super::lines::WIDTH;
    use super::*;

    fn check(id: ControlId, state: CheckState) -> ControlCheck {
        let is_fine = state == CheckState::Enforced;
        let (allowed, forbidden) = if is_fine {
            (
                Side::tried("getpid", "7", true),
                Side::tried("unshare(0), a netlink socket, io_uring_setup", "EPERM, EPERM, ENOSYS", true),
            )
        } else {
            (Side::not_tried("", "the control is missing"), Side::not_tried("", "the control is missing"))
        };
        ControlCheck {
            id,
            state,
            required: id.is_required_by_default(),
            proof: if is_fine { Proof::TwoSided } else { Proof::ReadBack },
            verification: None,
            requested: json!({}),
            observed: json!({}),
            allowed,
            forbidden,
            reason: (!is_fine).then(|| "it needs a cgroup, and without root this instance has none".to_owned()),
            remedy: (!is_fine).then(|| "start toolcell as root".to_owned()),
        }
    }

    fn report(controls: Vec<ControlCheck>) -> DoctorReport {
        DoctorReport {
            version: "0.1.0".to_owned(),
            architecture: "x86_64".to_owned(),
            kernel: "6.1.0".to_owned(),
            is_root: false,
            container: None,
            ready: false,
            serve: ServeCheck { starts: true, ..ServeCheck::default() },
            accept_unavailable: vec![ControlId::UsernsNested],
            go_without: Vec::new(),
            controls,
            warnings: vec![HostWarning {
                setting: "kernel.core_pattern".to_owned(),
                value: "|/usr/lib/systemd/systemd-coredump %P".to_owned(),
                removes: "a crash starts this program on the host, as root".to_owned(),
                instead: "the core limit of 1 byte keeps the kernel from starting it for a cell (core(5))".to_owned(),
                remedy: "sysctl -w kernel.core_pattern=core".to_owned(),
            }],
        }
    }

    #[test]
    fn a_report_is_a_table_the_missing_the_settings_and_a_verdict() {
        let text = doctor(
            &report(vec![
                check(ControlId::Seccomp, CheckState::Enforced),
                check(ControlId::CgroupMemory, CheckState::Unavailable),
                check(ControlId::CgroupPids, CheckState::Unavailable),
                check(ControlId::LandlockNet, CheckState::Unknown),
            ])
            .judged(),
        );
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_machine_that_is_fine_is_told_so_in_one_line() {
        let mut fine = report(vec![check(ControlId::Seccomp, CheckState::Enforced)]);
        (fine.ready, fine.warnings) = (true, Vec::new());
        let text = doctor(&fine);
        assert!(text.ends_with("\n\nready: `serve` starts with these options, and calls run\n"), "{text}");
    }

    #[test]
    fn why_serve_does_not_start_stands_first_and_once() {
        let (reason, remedy) = ("this machine has no groups", "mount them");
        let refused = |control: ControlCheck| ControlCheck {
            proof: Proof::None,
            reason: Some(format!("serve did not start: {reason}")),
            remedy: Some(remedy.to_owned()),
            ..control
        };
        let mut broken = report(vec![
            refused(check(ControlId::Seccomp, CheckState::Unknown)),
            refused(check(ControlId::CgroupMemory, CheckState::Unavailable)),
        ]);
        broken.serve = ServeCheck {
            starts: false,
            served_by: None,
            reason: Some(reason.to_owned()),
            remedy: Some(remedy.to_owned()),
        };
        broken.warnings.clear();
        let text = doctor(&broken);
        assert_eq!(text.matches(reason).count(), 1, "{text}");
        assert!(text.lines().nth(2).unwrap().contains(reason) && text.lines().count() <= 6, "{text}");
        assert!(text.contains("missing by it: cgroup.memory"), "{text}");
        // Where the rest was seen all the same.
        let seen = check(ControlId::Seccomp, CheckState::Enforced);
        let lacks =
            ControlCheck { reason: Some(reason.to_owned()), ..check(ControlId::CgroupMemory, CheckState::Unavailable) };
        broken.controls = vec![seen, lacks];
        let text = doctor(&broken);
        assert_eq!(text.matches(reason).count(), 1, "{text}");
        assert!(
            text.contains("two-sided") && text.contains("cgroup.memory: unavailable\n  why, and what to do: see above"),
            "{text}"
        );
    }

    #[test]
    fn one_that_serves_already_is_ready_and_nobody_is_told_to_end_it() {
        let mut served = report(vec![check(ControlId::Seccomp, CheckState::Enforced)]);
        served.ready = true;
        served.serve = ServeCheck {
            starts: false,
            served_by: Some(7),
            reason: Some("process 7 serves /s already".to_owned()),
            remedy: Some("nothing".to_owned()),
        };
        assert_eq!(verdict(&served), "ready: process 7 serves /s already, and calls run there\n  do: nothing\n");
    }

    #[test]
    fn a_serve_that_does_not_start_says_why_and_nothing_from_elsewhere_reaches_the_terminal() {
        let mut broken = report(Vec::new());
        broken.serve = ServeCheck {
            starts: false,
            served_by: None,
            reason: Some("/run/t.sock is in use by \u{1b}[31manother".to_owned()),
            remedy: Some("end it with `kill 7`".to_owned()),
        };
        let text = verdict(&broken);
        assert_eq!(
            text,
            "not ready: `serve` does not start: /run/t.sock is in use by \\u{1b}[31manother\n  do: end it with `kill 7`\n"
        );
    }
}
