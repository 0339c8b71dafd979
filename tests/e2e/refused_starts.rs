//! What `serve` refuses to start with, in a clear word, leaving nothing.

use toolcell_tests::{Finished, Need, Setup, needs, run, toolcell};

/// In a mount namespace of its own, first this, then the rest of the line.
fn after(shell: &str) -> Finished {
    let script = format!("set -e; {shell}; exec \"$0\" \"$@\"");
    let words = ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", &script];
    Setup::default().wrapped(&words).fails_to_start()
}

#[test]
fn a_machine_without_cgroups_is_told_what_each_version_lacks() {
    needs!(Need::Root, Need::Tool("unshare"));
    let refused = after("umount -l /sys/fs/cgroup");
    assert_ne!(refused.code, 0);
    let said = refused.stderr;
    assert!(said.contains("version 1 lacks cpu") && said.contains("version 2 is not mounted"), "{said}");
    assert!(said.contains("mount -t cgroup2"), "and what to do: {said}");
}

#[test]
fn a_state_directory_that_is_not_on_a_disk_of_this_machine_is_refused() {
    needs!(Need::Root, Need::Tool("unshare"));
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    for name in ["lower", "upper", "work", "over"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let at = dir.path().display().to_string();
    let mount =
        format!("mount -t overlay overlay -o lowerdir={at}/lower,upperdir={at}/upper,workdir={at}/work {at}/over");
    let state = format!("{at}/over/state");
    let script = format!("set -e; {mount}; exec \"$0\" \"$@\"");
    let words = ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", &script];
    let refused = Setup::default().wrapped(&words).state(&state).fails_to_start();
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("overlay"), "{}", refused.stderr);
}

#[test]
fn unknown_controls_and_keys_are_named() {
    needs!(Need::Root);
    let refused = Setup::default().flags(&["--accept-unavailable", "landlock.nett"]).fails_to_start();
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("landlock.nett"), "{}", refused.stderr);

    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "\nsockte = \"/tmp/x\"\n").unwrap();
    let path = config.path().to_string_lossy().into_owned();
    let refused = Setup::default().flags(&["--config", &path]).fails_to_start();
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("sockte") && refused.stderr.contains('2'), "key and line: {}", refused.stderr);
}

#[test]
fn an_accepted_control_is_reported_as_not_required() {
    needs!(Need::Root);
    let instance = Setup::default().flags(&["--accept-unavailable", "landlock.fs"]).start();
    let answer = instance.call(&toolcell_tests::Request::exec(&["true"]));
    let item = answer.controls.iter().find(|item| item["id"] == "landlock.fs").unwrap();
    assert_eq!((item["required"].as_bool(), item["state"].as_str()), (Some(false), Some("enforced")), "{item}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    needs!(Need::Root);
    let refused = run(&mut toolcell(&["serve", "--socket", "/proc/nowhere/s", "--state", "/proc/nowhere/state"]));
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("/proc/nowhere"), "{}", refused.stderr);
}
