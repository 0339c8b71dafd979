//! Controls that are really missing, each in a mount namespace of the test's own: what doctor says, what `serve` then does,
//! and that the remedy which is named is one.

use toolcell_tests::{Home, Need, Request, Setup, needs, run};
use toolcell_types::doctor::{CheckState, DoctorReport};

use super::{proven, report_of, same};

const GROUPS: [&str; 4] = ["cgroup.memory", "cgroup.cpu", "cgroup.pids", "cpu-clock"];

/// In a mount namespace of its own, first this, then the rest of the line.
fn after(shell: &str) -> Setup {
    let script = format!("set -e; {shell}; exec \"$0\" \"$@\"");
    Setup::default().wrapped(&["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", &script])
}

fn examined(setup: Setup, code: i32) -> (Home, DoctorReport) {
    let home = setup.home();
    let report = report_of(&run(&mut home.doctor(&["--json"])).expect_code(code));
    (home, report)
}

const NO_GROUPS: &str = "umount -l /sys/fs/cgroup";

#[test]
fn without_cgroups_the_four_that_need_them_are_missing_and_the_rest_is_still_seen() {
    needs!(Need::Root, Need::Tool("unshare"));
    let (home, report) = examined(after(NO_GROUPS), 1);
    assert!(!report.serve.starts && !report.ready);
    assert!(
        report.serve.reason.as_ref().unwrap().contains("no memory, cpu and pids controllers"),
        "{:?}",
        report.serve
    );
    for control in &report.controls {
        let is_missing = GROUPS.contains(&control.id.as_str());
        match control.state {
            CheckState::Unavailable if is_missing => {
                assert!(control.required, "{control:?}");
                assert!(control.remedy.as_ref().unwrap().contains("mount -t cgroup2"), "{control:?}");
            }
            CheckState::Enforced if !is_missing => {}
            // A kernel without that part of Landlock.
            CheckState::Unavailable if control.id.as_str().starts_with("landlock.") && !control.required => {}
            CheckState::Enforced | CheckState::Unavailable | CheckState::Unknown => panic!("{control:?}"),
        }
    }
    proven(&report);
    let (_home, refused) = home.fails_to_start();
    assert_ne!(refused.code, 0, "and serve does not start: {}", refused.stderr);
}

#[test]
fn without_cgroups_root_may_accept_that_and_calls_say_so() {
    needs!(Need::Root, Need::Tool("unshare"));
    let setup = after(NO_GROUPS).without_groups().flags(&["--accept-unavailable", &GROUPS.join(",")]);
    let (home, report) = examined(setup, 0);
    assert!(report.ready);
    let instance = home.start();
    let answer = instance.call(&Request::exec(&["true"]));
    same(&report, &answer);
    for id in GROUPS {
        let item = answer.controls.iter().find(|item| item["id"] == id).unwrap();
        assert_eq!((item["state"].as_str(), item["required"].as_bool()), (Some("unavailable"), Some(false)), "{item}");
    }
    let endpoint: DoctorReport = instance.get("/v1/doctor").json();
    same(&endpoint, &answer);
    // The tree still dies with its clock.
    let late = instance.call(&Request::exec(&["sleep", "60"]).limits(serde_json::json!({ "wall_ms": 200 })));
    assert_eq!(late.verdict, toolcell_types::Verdict::WallLimit);
    assert_eq!(instance.cell_processes(), Vec::new());
}

#[test]
fn accepting_three_of_the_four_is_not_enough() {
    needs!(Need::Root, Need::Tool("unshare"));
    let three = GROUPS[..3].join(",");
    let refused = after(NO_GROUPS).flags(&["--accept-unavailable", &three]).fails_to_start();
    assert_ne!(refused.code, 0, "{}", refused.stderr);
    assert!(refused.stderr.contains("controllers"), "{}", refused.stderr);
}

#[test]
fn where_proc_is_covered_no_cell_can_be_had_and_it_is_told_why() {
    needs!(Need::Root, Need::Tool("unshare"));
    let (home, report) = examined(after("mount --bind /dev/null /proc/timer_list"), 1);
    assert!(!report.ready && !report.serve.starts);
    for control in &report.controls {
        let is_it = control.id.as_str() == "proc.masked";
        assert_eq!(control.state, if is_it { CheckState::Unavailable } else { CheckState::Unknown }, "{control:?}");
        assert!(control.remedy.as_ref().unwrap().contains("systempaths=unconfined"), "{control:?}");
        assert!(control.remedy.as_ref().unwrap().contains("unmount what covers"), "{control:?}");
    }
    let (_home, refused) = home.fails_to_start();
    assert!(refused.code != 0 && refused.stderr.contains("/proc"), "{}", refused.stderr);

    let (home, report) = examined(after("mount --bind /dev/null /proc/timer_list; umount /proc/timer_list"), 0);
    same(&report, &home.start().call(&Request::exec(&["true"])));
}

#[test]
fn settings_that_take_a_second_line_away_are_told_with_the_command_that_gives_it_back() {
    needs!(Need::Root, Need::Tool("unshare"), Need::File("/proc/sys/kernel/core_pattern"));
    let with = |pattern: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), pattern).unwrap();
        // The machine's own setting stays as it is. No cell can be had with it, as /proc is covered then.
        let setup = after(&format!("mount --bind {} /proc/sys/kernel/core_pattern", file.path().display()));
        examined(setup, 1).1.warnings.into_iter().find(|warning| warning.setting == "kernel.core_pattern")
    };
    let warning = with("|/usr/bin/handler %p\n").expect("a handler is told");
    assert_eq!(warning.value, "|/usr/bin/handler %p");
    assert!(warning.remedy.ends_with("sysctl -w kernel.core_pattern=core"), "{warning:?}");
    assert_eq!(with("core\n"), None, "the control");
}

#[test]
fn a_policy_with_a_mistake_is_told_as_serve_tells_it() {
    needs!(Need::Root);
    let (home, report) = examined(Setup::default().policy("tools.toml", "[tools.x]\ndescription = 1\n"), 1);
    assert!(!report.serve.starts);
    let reason = report.serve.reason.unwrap();
    assert!(reason.contains("tools.toml") && reason.contains("the policy is not valid"), "{reason}");
    let (_home, refused) = home.fails_to_start();
    assert_ne!(refused.code, 0);
}
