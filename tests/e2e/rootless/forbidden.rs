//! Starts that are refused without root, each with the word that names what forbids it; and what takes the place of a call
//! that a container's filter does not know.

use std::os::unix::process::CommandExt as _;

use toolcell_tests::{Instance, Need, OrdinaryUser, Request, Setup, command, needs, program_on_host, run};
use toolcell_types::{ErrorCode, Verdict};

use super::{accepted, both_users, start};

#[test]
fn a_user_without_a_runtime_folder_is_told_which_variable_to_set() {
    needs!(Need::OrdinaryUsers);
    let user = OrdinaryUser::without_ids();
    for words in [&["run", "--", "true"][..], &["serve"]] {
        let mut line = user.toolcell(words);
        let refused = run(line.env_remove("XDG_RUNTIME_DIR"));
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains("export XDG_RUNTIME_DIR="), "{}", refused.stderr);
        let mut line = user.toolcell(words);
        let refused = run(line.env_remove("HOME").env_remove("XDG_STATE_HOME"));
        assert!(refused.code != 0 && refused.stderr.contains("XDG_STATE_HOME"), "{}", refused.stderr);
    }
    assert_eq!(user.processes(), Vec::new());
    assert_eq!(std::fs::read_dir(user.state()).unwrap().count(), 0, "nothing is made");
}

#[test]
fn a_machine_that_allows_no_user_namespace_is_told_the_sysctl() {
    needs!(Need::SubordinateIds, Need::Tool("bwrap"));
    let user = OrdinaryUser::with_ids();
    // In a user namespace in which no further one may be made (bwrap(1), --disable-userns).
    let mut bwrap = user.command("bwrap");
    bwrap.args(["--unshare-user", "--disable-userns", "--dev-bind", "/", "/", &user.binary(), "serve"]);
    let refused = run(&mut bwrap);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("user.max_user_namespaces"), "{}", refused.stderr);
    assert!(refused.stderr.contains("sysctl -w user.max_user_namespaces="), "{}", refused.stderr);
    assert_eq!(user.processes(), Vec::new(), "nor does anything wait for what will not be");
    drop(start(&user));
}

#[test]
fn a_socket_for_others_and_ids_of_one_s_choice_are_refused_without_root() {
    needs!(Need::OrdinaryUsers);
    let user = OrdinaryUser::without_ids();
    let refused = Setup::default().user(&user).flags(&["--socket-mode", "0666"]).fails_to_start();
    assert!(refused.code != 0 && refused.stderr.contains("serves its own user alone"), "{}", refused.stderr);
    drop(Setup::default().user(&user).flags(&["--socket-mode", "0600"]).start());
    let refused = Setup::default().user(&user).flags(&["--uid-base", "70000"]).fails_to_start();
    assert!(refused.code != 0 && refused.stderr.contains("--uid-base 70000 is for root"), "{}", refused.stderr);
}

/// What a user with a range is told about its identity when newuidmap cannot be used.
fn identity_of(user: &OrdinaryUser, before: &str) -> String {
    let script = format!(
        "set -e; {before}; exec setpriv --reuid {0} --regid {1} --clear-groups $how \"$0\" \"$@\"",
        user.uid(),
        user.gid()
    );
    let words = ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", &script];
    let instance = Setup::default().user(user).wrapped(&words).start();
    instance.post(&Request::exec(&["true"])).problem(ErrorCode::ControlUnavailable).detail
}

#[test]
fn a_range_is_no_use_without_newuidmap_and_the_reason_is_told() {
    needs!(Need::SubordinateIds, Need::Tool("unshare"), Need::Tool("setpriv"));
    let user = OrdinaryUser::with_ids();
    let told = identity_of(&user, "how=; mount --bind /dev/null \"$(readlink -f /usr/bin/newuidmap)\"");
    assert!(told.contains("identity.unprivileged") && told.contains("newuidmap is not installed"), "{told}");
    // Set-id programs gain nothing under no_new_privs.
    let told = identity_of(&user, "how=--no-new-privs");
    assert!(told.contains("identity.unprivileged") && told.contains("no_new_privs is set"), "{told}");
    // Nor on a mount that is nosuid, which shows when they are used.
    let told = identity_of(&user, "how=; mount --bind /usr/bin /usr/bin; mount -o remount,bind,nosuid /usr/bin");
    assert!(told.contains("identity.unprivileged") && told.contains("newgidmap failed"), "{told}");
    let told = identity_of(&user, "how=");
    assert!(!told.contains("identity.unprivileged"), "the control: {told}");
}

#[test]
fn cells_are_made_where_clone3_does_not_exist() {
    needs!(Need::OrdinaryUsers, Need::Root, Need::Tool("setpriv"));
    let filter = program_on_host("without_clone3").to_string_lossy().into_owned();
    let ends = |instance: &Instance| {
        assert!(instance.launcher().status("Seccomp_filters") != "0", "the filter is there");
        let answer = instance.call(&Request::program("leaves_children", &["daemon"]));
        assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{answer:?}");
    };
    ends(&Setup::default().wrapped(&[&filter]).start());
    for user in both_users() {
        let (uid, gid) = (user.uid().to_string(), user.gid().to_string());
        let words = [filter.as_str(), "setpriv", "--reuid", &uid, "--regid", &gid, "--clear-groups"];
        let setup = Setup::default().user(&user).wrapped(&words);
        ends(&setup.flags(&["--accept-unavailable", &accepted(&user)]).start());
    }
}

#[test]
fn a_user_that_is_nobody_s_owner_cannot_use_another_s_state() {
    needs!(Need::OrdinaryUsers);
    let (user, other) = (OrdinaryUser::without_ids(), OrdinaryUser::without_ids());
    let instance = start(&user);
    let socket = instance.socket().to_string_lossy().into_owned();
    let ask = |user: &OrdinaryUser| {
        let mut line = command(user.binary());
        line.args(["calls", "--socket", &socket]).uid(user.uid()).gid(user.gid());
        run(&mut line).code
    };
    assert_eq!((ask(&user), ask(&other)), (0, 1));
    let state = instance.home().state().to_string_lossy().into_owned();
    let refused = Setup::default().user(&other).state(&state).fails_to_start();
    assert_ne!(refused.code, 0, "{}", refused.stderr);
}
