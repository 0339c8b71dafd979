//! In a container without any privilege added: the suite's core as root, and what is said where a flag is missing.

use std::time::Duration;

use toolcell_tests::{
    Container, Finished, Flag, Grounds, Groups, Need, command, eventually, needs, open_dir, run, workspace_root,
};

use toolcell_types::doctor::{CheckState, DoctorReport};

use crate::core::{self, CORE};

/// What is run there by root besides the core: every limit, and cases from the field.
const MORE: [&str; 2] = ["field::", "limits::"];
/// What cannot be shown there by root, and why not.
const ROOT_LEFT_OUT: [&str; 12] = [
    // They take long by their nature and ask nothing of a container.
    "limits::values::",
    "long_silence",
    "asks_for_ever",
    "cancel_at_the_moment",
    // What stands around the program there (a filter, a covered /proc) needs CAP_SYS_ADMIN to be made.
    "field::a_kernel_without_landlock_is_told_so_and_nothing_is_started",
    "field::where_parts_of_proc_are_covered_nothing_starts",
    // The image's shell has no `ulimit -p`.
    "limits::nested::a_program_s_own_limit_of_processes_below_the_call_s_is_not_the_call_s",
    // Each takes something away in a mount namespace of its own, for which a container's root has no privilege.
    "doctor::missing::",
    // Each of these compares the cell with what is allowed outside of it, and most of that is refused to a container too.
    "escapes::every_denied_act_fails_inside_and_gets_through_outside",
    "escapes::in_a_cell_with_mounts_no_socket_file_of_the_host_can_be_reached_either",
    // The observer would need CAP_SYS_PTRACE: a cell's environment can be read by nobody else.
    "posture::live_cell_posture_seen_from_outside_equals_the_report",
    "ablation::every_switch_switches_its_control_and_no_other_seen_from_outside",
];
/// And by an ordinary user.
const USER_LEFT_OUT: [&str; 5] = [
    // It compares the cell with what is allowed outside of it.
    "rootless::posture::every_denied_act_fails_inside_and_gets_through_outside",
    // The observer would need setns(2), which the profile for containers does not have.
    "rootless::posture::a_live_cell_seen_from_outside_equals_the_report",
    // It looks for any process of the user, of whom the suite itself is one there.
    "rootless::forbidden::a_user_without_a_runtime_folder_is_told_which_variable_to_set",
    // These need a second user, and a file of somebody else's.
    "rootless::forbidden::a_user_that_is_nobody_s_owner_cannot_use_another_s_state",
    "rootless::mounts::what_the_user_may_not_read_is_refused_although_the_launcher_has_capabilities",
];
/// Half a minute on two idle processors.
const LIMIT: Duration = Duration::from_secs(300);

#[test]
fn the_core_of_the_suite_passes_as_root_in_a_container() {
    needs!(Need::Root, Need::ContainerEngine, Need::Tool("busybox"), Need::Tool("strip"));
    let chosen = std::env::var("TOOLCELL_TESTS_IN_CONTAINER").ok();
    let all = CORE.into_iter().chain(MORE).filter(|module| *module != "unified::" || Need::UnifiedCgroups.is_there());
    let words: Vec<&str> = chosen.as_deref().map_or_else(|| all.collect(), |words| words.split(' ').collect());
    let grounds = Grounds::prepare();
    let container = grounds.container().flags_with_state_at(&Flag::ALL, "/var/tmp");
    let report = container.run_suite(&core::line(&words, &ROOT_LEFT_OUT), LIMIT);
    core::check("in a container as root", &report, &words, &["python3", "PythonVerifiers", "openssl", "\"script\""]);
}

/// An ordinary user with nothing at all: no capability, and none to be gained.
const ORDINARY: [&str; 6] = ["--user", "1234:1234", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];

/// What such a user's calls lack there.
const MISSING: &str = "identity.unprivileged,cgroup.memory,cgroup.cpu,cgroup.pids,cpu-clock";

/// A volume that is this user's, at `state`.
fn as_ordinary_user<'a>(grounds: &'a Grounds, flags: &[Flag], state: &str) -> Container<'a> {
    let owned = grounds.container().flags_with_state_at(&[Flag::State], state).run(&["chown", "1234:1234", state]);
    assert_eq!(owned.code, 0, "{}", owned.stderr);
    grounds.container().flags_with_state_at(flags, state).with(&ORDINARY)
}

#[test]
fn the_core_for_ordinary_users_passes_as_one_in_a_container() {
    needs!(Need::Root, Need::ContainerEngine, Need::Tool("busybox"), Need::Tool("strip"));
    let chosen = std::env::var("TOOLCELL_TESTS_IN_CONTAINER").ok();
    let words: Vec<&str> = chosen.as_deref().map_or_else(|| vec!["rootless::"], |words| words.split(' ').collect());
    let grounds = Grounds::prepare();
    let flags = [Flag::Seccomp, Flag::SystemPaths, Flag::State];
    // One after the other: they are all the same user's, whose cells cannot be told apart.
    let container = as_ordinary_user(&grounds, &flags, "/var/tmp").with(&["--env", "TOOLCELL_TESTS_THREADS=1"]);
    let report = container.run_suite(&core::line_for_users(&words, &USER_LEFT_OUT), LIMIT);
    let known = ["python3", "openssl", "bwrap", "setpriv", "nsenter", "SubordinateIds", "Root"];
    core::check("in a container as an ordinary user", &report, &words, &known);
}

/// Starts a daemon for one call there, with all that it says.
fn call(container: &Container<'_>) -> Finished {
    container.run(&["/suite/toolcell", "run", "--", "/bin/busybox", "echo", "forty-two"])
}

fn runs(container: &Container<'_>) -> String {
    let finished = call(container);
    assert_eq!((finished.code, finished.text().as_str()), (0, "forty-two\n"), "{container:?}: {}", finished.stderr);
    finished.stderr
}

/// No daemon is had, and these words say why.
fn is_told(container: &Container<'_>, words: &[&str]) {
    is_refused(container, 125, words);
}

/// Nothing runs, and these words say why.
fn is_refused(container: &Container<'_>, code: i32, words: &[&str]) {
    let finished = call(container);
    assert_eq!((finished.code, finished.text().as_str()), (code, ""), "{container:?}: {}", finished.stderr);
    for word in words {
        assert!(finished.stderr.contains(word), "{word:?} is not in: {}", finished.stderr);
    }
}

#[test]
fn a_plain_container_is_told_every_flag_and_each_one_left_out_by_name() {
    needs!(Need::Root, Need::ContainerEngine, Need::Tool("busybox"), Need::Tool("strip"));
    let grounds = Grounds::prepare();
    let paths = "--security-opt systempaths=unconfined";
    let (seccomp, groups, state) = (
        "--security-opt seccomp=toolcell-seccomp.json",
        "/toolcell-container:/sys/fs/cgroup",
        "-v toolcell-state:/var/lib/toolcell",
    );
    is_told(&grounds.container(), &["root has no CAP_SYS_ADMIN here", seccomp, paths, groups, state]);
    let hint = call(&grounds.container()).stderr;
    let hint = hint.lines().find(|line| line.starts_with("hint: ")).unwrap();
    let dockerfile = std::fs::read_to_string(workspace_root().join("Dockerfile")).unwrap();
    let values: Vec<&str> = hint.split(' ').skip(1).filter(|word| word.contains(['=', '/'])).collect();
    assert!(values.len() >= 4, "{hint}");
    for value in values {
        assert!(dockerfile.contains(value), "the Dockerfile says the same as the program: {value}");
    }
    let without = |left_out: Flag| {
        let flags: Vec<Flag> = Flag::ALL.into_iter().filter(|flag| *flag != left_out).collect();
        grounds.container().flags(&flags)
    };
    is_told(&without(Flag::Seccomp), &["may not make a user namespace", seccomp]);
    is_told(&without(Flag::SystemPaths), &["a cell's own /proc is refused", paths]);
    is_told(&without(Flag::Groups), &["Read-only file system", "mkdir /sys/fs/cgroup", groups]);
    is_told(&without(Flag::State), &["lies on a file system of type", "in a container, on a volume"]);
    // A privilege instead of the namespace does not replace the profile: Docker's refuses pivot_root to everybody.
    let privileged = without(Flag::Seccomp).with(&["--cap-add", "SYS_ADMIN"]);
    is_told(&privileged, &["a cell's own mounts are refused", seccomp]);
    let unmapped = grounds.container().flags(&Flag::ALL).with(&["--cap-drop", "SETFCAP"]);
    is_told(&unmapped, &["may not write the uid_map", "--cap-add SETFCAP"]);
    assert!(runs(&grounds.container().flags(&Flag::ALL)).contains("29 of 29 controls enforced"), "the control");
}

/// What doctor says there: its exit code and its report.
fn doctor(container: &Container<'_>) -> (i32, DoctorReport) {
    let finished = container.run(&["/suite/toolcell", "doctor", "--json"]);
    (finished.code, serde_json::from_value(finished.json()).expect("a report"))
}

#[test]
fn doctor_in_a_container_names_the_flag_that_is_left_out_and_what_goes_with_it() {
    needs!(Need::Root, Need::ContainerEngine, Need::Tool("busybox"), Need::Tool("strip"));
    let grounds = Grounds::prepare();
    let without = |left_out: Flag, word: &str, missing: &[&str]| {
        let flags: Vec<Flag> = Flag::ALL.into_iter().filter(|flag| *flag != left_out).collect();
        let container = grounds.container().flags(&flags);
        let (code, report) = doctor(&container);
        assert_eq!((code, report.ready, report.serve.starts), (1, false, false), "{left_out:?}");
        let remedy = report.serve.remedy.clone().unwrap_or_default();
        assert!(remedy.contains(word), "{left_out:?}: {word:?} is not in: {remedy}");
        let of = |state| report.controls.iter().filter(move |one| one.state == state).map(|one| one.id.as_str());
        assert_eq!(of(CheckState::Unavailable).collect::<Vec<_>>(), missing, "{left_out:?}");
        // And no call runs.
        assert_ne!(call(&container).code, 0, "{left_out:?}");
        of(CheckState::Enforced).count()
    };
    assert_eq!(without(Flag::Seccomp, "seccomp=toolcell-seccomp.json", &["namespace.user"]), 0);
    assert_eq!(without(Flag::SystemPaths, "systempaths=unconfined", &["proc.masked"]), 0);
    let groups = ["cgroup.memory", "cgroup.cpu", "cgroup.pids", "cpu-clock"];
    assert_eq!(
        without(Flag::Groups, "/toolcell-container:/sys/fs/cgroup", &groups),
        25,
        "the rest is seen all the same"
    );
    assert_eq!(without(Flag::State, "on a volume", &[]), 0);

    let container = grounds.container().flags(&Flag::ALL);
    let (code, report) = doctor(&container);
    assert_eq!((code, report.ready), (0, true), "{report:?}");
    assert!(report.controls.iter().all(|one| one.state == CheckState::Enforced), "{report:?}");
    assert!(report.container.is_some(), "it knows where it is");
    assert!(runs(&container).contains("29 of 29 controls enforced"));
}

#[test]
fn with_almost_no_privilege_all_controls_are_enforced_and_with_more_as_well() {
    needs!(Need::Root, Need::ContainerEngine, Need::Tool("busybox"), Need::Tool("strip"));
    let grounds = Grounds::prepare();
    let container = || grounds.container().flags(&Flag::ALL);
    let least = ["--cap-drop", "ALL", "--cap-add", "SETUID", "--cap-add", "SETGID", "--cap-add", "SETFCAP"];
    let least = container().with(&least).with(&["--security-opt", "no-new-privileges"]);
    // On a volume that is as fresh as the first time: nothing of doctor's stays, and serve takes it.
    let (code, report) = doctor(&least);
    assert_eq!((code, report.ready), (0, true), "{report:?}");
    let left = least.run(&["/bin/busybox", "ls", "-A", "/var/lib/toolcell"]);
    assert_eq!((left.code, left.text().as_str()), (0, ""), "nothing stays: {}", left.stderr);
    for container in
        [least, container().with(&["--cgroupns", "private"]), container().with(&["--cap-add", "SYS_ADMIN"])]
    {
        let said = runs(&container);
        assert!(said.contains("29 of 29 controls enforced"), "{container:?}: {said}");
    }
}

#[test]
fn an_ordinary_user_in_a_container_is_told_what_is_missing_and_goes_without_by_one_option() {
    needs!(Need::Root, Need::ContainerEngine, Need::Tool("busybox"), Need::Tool("strip"));
    let grounds = Grounds::prepare();
    let runtime = ["--tmpfs", "/run/user:mode=0700,uid=1234,gid=1234", "--env", "XDG_RUNTIME_DIR=/run/user"];
    let at_home = [&["--env", "XDG_STATE_HOME=/state"][..], &runtime].concat();
    is_told(&grounds.container().with(&ORDINARY), &["XDG_RUNTIME_DIR"]);
    let flags = [Flag::SystemPaths, Flag::State];
    let plain = as_ordinary_user(&grounds, &flags, "/state").with(&at_home);
    is_told(
        &plain,
        &["does not let an ordinary user have a user namespace", "--security-opt seccomp=toolcell-seccomp.json"],
    );
    let flags = [Flag::Seccomp, Flag::State];
    let masked = as_ordinary_user(&grounds, &flags, "/state").with(&at_home);
    is_told(&masked, &["a cell's own /proc is refused", "--security-opt systempaths=unconfined"]);

    let goes_without = |container: &Container<'_>, missing: &str, enforced: &str| {
        is_refused(container, 126, &["CONTROL_UNAVAILABLE", "--accept-unavailable", missing]);
        let line =
            ["/suite/toolcell", "run", "--accept-unavailable", missing, "--", "/bin/busybox", "echo", "forty-two"];
        let finished = container.run(&line);
        assert_eq!((finished.code, finished.text().as_str()), (0, "forty-two\n"), "{}", finished.stderr);
        assert!(finished.stderr.contains(enforced), "{}", finished.stderr);
    };
    let flags = [Flag::Seccomp, Flag::SystemPaths, Flag::State];
    let container = as_ordinary_user(&grounds, &flags, "/state").with(&at_home);
    goes_without(&container, MISSING, "24 of 29 controls enforced");
    // With groups that are the user's own. On version 2 it would have to be started in them.
    if !Need::UnifiedCgroups.is_there() {
        grounds.give_groups_to(1234);
        let container = as_ordinary_user(&grounds, &Flag::ALL, "/state").with(&at_home);
        goes_without(&container, "identity.unprivileged", "28 of 29 controls enforced");
    }
}

#[test]
fn the_image_of_the_dockerfile_serves_as_root_and_as_an_ordinary_user() {
    needs!(Need::Root, Need::ContainerEngine, Need::Tool("busybox"), Need::Tool("strip"));
    let grounds = Grounds::prepare();
    let image = grounds.build();
    let profile =
        grounds.container().of(&image).with(&["--entrypoint", "cat"]).run(&["/usr/share/toolcell/seccomp.json"]);
    let ours = std::fs::read_to_string(workspace_root().join("runner/cell/filters/container.json")).unwrap();
    assert_eq!(profile.text(), ours, "it brings the profile that it needs");

    let container = grounds.container().of(&image).flags(&Flag::ALL);
    let started = container.start();
    let line = ["toolcell", "run", "--", "/bin/busybox", "echo", "forty-two"];
    let answered = eventually("the daemon to serve", || Some(started.exec(&line)).filter(|done| done.code == 0));
    assert_eq!(answered.text(), "forty-two\n");
    assert!(answered.stderr.contains("29 of 29 controls enforced"), "{}", answered.stderr);
    let asked = started.exec(&["toolcell", "doctor", "--json"]);
    let report: DoctorReport = serde_json::from_value(asked.json()).expect("a report");
    assert_eq!((asked.code, report.ready, report.serve.served_by), (0, true, Some(1)), "{:?}", report.serve);
    assert!(!report.serve.remedy.unwrap().contains("kill"), "it would end the container");
    let (code, said) = started.stop();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("serving /run/toolcell/toolcell.sock"), "{said}");

    let flags = [Flag::Seccomp, Flag::SystemPaths];
    let user = grounds.container().of(&image).flags(&flags).with(&ORDINARY);
    let line = ["run", "--accept-unavailable", MISSING, "--", "/bin/busybox", "echo", "forty-two"];
    // Of a volume that the image itself asks for.
    let finished = user.run(&line);
    assert_eq!((finished.code, finished.text().as_str()), (0, "forty-two\n"), "{}", finished.stderr);
    assert!(finished.stderr.contains("24 of 29 controls enforced"), "{}", finished.stderr);
}

#[test]
fn root_with_remapped_ids_has_all_controls_within_the_few_ids_that_there_are() {
    needs!(Need::Root, Need::Tool("unshare"), Need::Tool("setpriv"));
    let (dir, program) = open_dir();
    let groups = Groups::name();
    let mut script = command("bash");
    script.arg(workspace_root().join("tests/scripts/remapped.sh")).arg(&program).arg(dir.path()).arg(groups.as_str());
    let finished = run(&mut script).expect_code(0);
    assert!(finished.stderr.contains("29 of 29 controls enforced"), "{}", finished.stderr);
    let lines: Vec<String> = finished.text().lines().map(str::to_owned).collect();
    let base: u32 = lines.last().unwrap().parse().unwrap();
    assert!((20_000..65_534).contains(&base), "the range's first id is one of those: {lines:?}");
    let [init, tool] = [base + 16, base + 17];
    for (line, id) in lines.iter().zip([format!("65533 {init} 1"), format!("65534 {tool} 1")]) {
        assert_eq!(line.split_whitespace().collect::<Vec<_>>().join(" "), id, "and cells have two each: {lines:?}");
    }
}
