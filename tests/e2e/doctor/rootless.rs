//! The same for an ordinary user's instance, with and without subordinate ids.

use toolcell_tests::{Need, OrdinaryUser, Request, Setup, needs, run};
use toolcell_types::doctor::CheckState;

use super::{proven, report_of, same};
use crate::rootless::{accepted, both_users, missing, way_to_ids};

/// What the user's own `toolcell doctor` says, with these options.
fn doctor(user: &OrdinaryUser, words: &[&str]) -> (i32, toolcell_types::doctor::DoctorReport) {
    let finished = run(&mut user.toolcell(&[&["doctor", "--json"], words].concat()));
    (finished.code, report_of(&finished))
}

#[test]
fn what_an_ordinary_user_lacks_is_told_with_the_way_to_it_and_accepted_by_name() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let lacks = missing(&user);
        let (code, report) = doctor(&user, &[]);
        assert_eq!((code, report.ready, report.is_root), (1, false, false));
        assert!(report.serve.starts, "it starts, and refuses calls: {:?}", report.serve);
        for control in &report.controls {
            let is_missing = lacks.contains(control.id.as_str());
            let state = if is_missing { CheckState::Unavailable } else { CheckState::Enforced };
            assert_eq!(control.state, state, "{control:?}");
            let told = control.remedy.as_deref().unwrap_or_default();
            match control.id.as_str() {
                "identity.unprivileged" if is_missing => assert!(told.contains(way_to_ids()), "{told}"),
                _ if is_missing => assert!(told.contains("as root"), "{told}"),
                _ => assert_eq!(told, ""),
            }
        }
        proven(&report);
        let named: std::collections::BTreeSet<&str> = report.go_without.iter().map(|id| id.as_str()).collect();
        let needed = accepted(&user);
        assert_eq!(named, needed.split(',').collect(), "what has to be accepted is in the report");
        assert!(lacks.iter().all(|id| report.serve.reason.as_ref().unwrap().contains(id)), "{:?}", report.serve);
        // A call is refused for the same, and names the same.
        let refused = run(&mut user.toolcell(&["run", "--", "true"]));
        assert_ne!(refused.code, 0);
        assert!(lacks.iter().all(|id| refused.stderr.contains(id)), "{}", refused.stderr);
        user.end_daemons();

        let (code, report) = doctor(&user, &["--accept-unavailable", &accepted(&user)]);
        assert_eq!((code, report.ready), (0, true));
        let instance = crate::rootless::start(&user);
        same(&report, &instance.call(&Request::exec(&["true"])));
        let endpoint: toolcell_types::doctor::DoctorReport = instance.get("/v1/doctor").json();
        same(&endpoint, &instance.call(&Request::exec(&["true"])));
        drop(instance);
        let left = std::fs::read_dir(user.state()).unwrap().filter_map(Result::ok);
        let left: Vec<_> = left.map(|entry| entry.file_name()).filter(|name| name != "toolcell").collect();
        assert_eq!(left, Vec::<std::ffi::OsString>::new(), "nothing of a trial stays");
        assert_eq!(user.launchers(), Vec::new());
    }
}

#[test]
fn a_user_who_may_have_no_user_namespace_is_told_the_setting_and_with_it_serve_starts() {
    needs!(Need::SubordinateIds, Need::Tool("setpriv"), Need::Tool("unshare"));
    let user = OrdinaryUser::without_ids();
    // The setting belongs to the user namespace in which it is read, so that the machine's own stays.
    let within = |most: u32| {
        let limit = format!("echo {most} > /proc/sys/user/max_user_namespaces");
        let script = format!("set -e; {limit}; exec setpriv --inh-caps=-all --ambient-caps=-all \"$0\" \"$@\"");
        let ids = [format!("--reuid={}", user.uid()), format!("--regid={}", user.gid())];
        let words = [
            &["setpriv", &ids[0], &ids[1], "--clear-groups"][..],
            &["unshare", "--user", "--map-current-user", "--keep-caps", "--", "/bin/sh", "-c", &script],
        ]
        .concat();
        Setup::default().user(&user).wrapped(&words).flags(&["--accept-unavailable", &accepted(&user)])
    };
    let home = within(0).home();
    let finished = run(&mut home.doctor(&["--json"])).expect_code(1);
    let report = report_of(&finished);
    assert!(!report.serve.starts && !report.ready);
    assert!(
        report.serve.remedy.as_ref().unwrap().contains("sysctl -w user.max_user_namespaces="),
        "{:?}",
        report.serve
    );
    for control in &report.controls {
        let is_it = control.id.as_str() == "namespace.user";
        assert_eq!(control.state, if is_it { CheckState::Unavailable } else { CheckState::Unknown }, "{control:?}");
    }
    let (_home, refused) = home.fails_to_start();
    assert!(refused.code != 0 && refused.stderr.contains("user.max_user_namespaces"), "{}", refused.stderr);

    let home = within(5000).home();
    let report = report_of(&run(&mut home.doctor(&["--json"])).expect_code(0));
    same(&report, &home.start().call(&Request::exec(&["true"])));
}

#[test]
fn a_socket_where_the_user_may_have_none_is_told_and_no_start_finds_one() {
    needs!(Need::OrdinaryUsers);
    let user = OrdinaryUser::without_ids();
    let accepted = accepted(&user);
    let line = |command: &'static str, socket: &str| {
        run(&mut user.toolcell(&[command, "--socket", socket, "--accept-unavailable", &accepted]))
    };
    for socket in ["/etc/toolcell-tests.sock", "/proc/toolcell-tests.sock", "/etc/toolcell-tests/s"] {
        let told = line("doctor", socket);
        assert_eq!(told.code, 1, "{}", told.text());
        let flat = told.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&format!("cannot listen at {socket}")), "{}", told.text());
        assert!(flat.contains("--socket"), "{}", told.text());
        assert_ne!(line("serve", socket).code, 0, "{socket}");
    }
    let own = user.runtime().join("lab/s");
    let told = line("doctor", &own.display().to_string());
    assert_eq!(told.code, 0, "{}", told.text());
    assert!(!user.runtime().join("lab").exists(), "the control, and nothing stays");
}

#[test]
fn without_a_place_for_a_socket_it_is_told_which_variable_to_set() {
    needs!(Need::OrdinaryUsers);
    let user = OrdinaryUser::without_ids();
    let mut line = user.toolcell(&["doctor", "--json"]);
    let report = report_of(&run(line.env_remove("XDG_RUNTIME_DIR")).expect_code(1));
    assert!(report.serve.reason.unwrap().contains("XDG_RUNTIME_DIR"));
    let remedy = report.serve.remedy.unwrap();
    assert!(remedy.contains("export XDG_RUNTIME_DIR="), "{remedy}");
    // As it is told, up to where other ways begin.
    let shell = format!("{} && exec \"$0\" doctor --json", remedy.split([',', ';']).next().unwrap());
    let mut line = user.command("sh");
    let done = run(line.env_remove("XDG_RUNTIME_DIR").args(["-c", &shell, &user.binary()]));
    assert!(report_of(&done).serve.starts, "{shell}: {}", done.stderr);
    assert!(report.controls.iter().all(|control| control.state == CheckState::Unknown));
}
