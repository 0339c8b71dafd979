//! Instances and their groups side by side: each has its own, and nobody sweeps another's. On either cgroup version.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolcell_tests::{Groups, Instance, Need, OrdinaryUser, Request, Running, Setup, groups_named, needs, run};
use toolcell_types::Verdict;

fn waits() -> Request {
    Request::program("waits", &["deaf"]).limits(json!({ "wall_ms": 60_000 }))
}

#[test]
fn two_instances_have_groups_of_their_own_and_a_start_sweeps_only_its_own() {
    needs!(Need::Root);
    let (one, other) = (Instance::start(), Instance::start());
    let (lost, kept) = (Running::until_up(&one, &waits()), Running::until_up(&other, &waits()));
    assert_eq!(one.cell_groups().len(), other.cell_groups().len());
    assert!(one.cell_groups().iter().all(|dir| !other.cell_groups().contains(dir)));
    let of_other = other.cell_groups();

    let launcher = one.launcher();
    let again = one.crash(&launcher).start();
    assert_eq!(again.cell_groups(), Vec::<PathBuf>::new(), "swept at its start");
    assert_eq!(lost.answer().verdict, Verdict::Lost);
    assert_eq!(other.cell_groups(), of_other, "the other's is as it was");
    assert!(kept.process("waits").is_alive());
    assert_eq!(kept.cancel().status() / 100, 2);
    assert_eq!(kept.answer().verdict, Verdict::Cancelled);
}

#[test]
fn the_operator_s_parent_holds_the_groups() {
    needs!(Need::Root);
    let groups = Groups::name();
    let name = groups.as_str();
    let parent = format!("/{name}/a");
    let instance = Setup::default().flags(&["--cgroup-parent", &parent]).start();
    let running = Running::until_up(&instance, &waits());
    for dir in instance.cell_groups() {
        let parent = dir.parent().and_then(Path::parent).unwrap();
        assert!(parent.ends_with(format!("{name}/a")), "{}", dir.display());
        let members = std::fs::read_to_string(dir.join("cgroup.procs")).unwrap();
        let tool = running.process("waits").pid.to_string();
        assert!(members.lines().any(|line| line == tool), "{}: {members}", dir.display());
    }
    assert_eq!(running.cancel().status() / 100, 2);
    assert_eq!(running.answer().verdict, Verdict::Cancelled);
    let of_instance = instance.name().to_owned();
    drop(instance.stop());
    assert_eq!(groups_named(&of_instance), Vec::<PathBuf>::new());
    assert_eq!(groups_named(name), Vec::<PathBuf>::new(), "what was not there before goes as well");
}

fn below(group: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(group).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// What doctor makes on its way goes again; what an operator has prepared stays as it was.
#[test]
fn nothing_is_left_below_a_parent_and_one_that_was_there_stays() {
    needs!(Need::Root);
    let groups = Groups::name();
    let deep = format!("/{}/a/b", groups.as_str());
    let done = run(&mut Setup::default().flags(&["--cgroup-parent", &deep]).home().doctor(&[])).expect_code(0);
    assert_eq!(groups_named(groups.as_str()), Vec::<PathBuf>::new(), "{}", done.text());
    let prepared = groups.make();
    let parent = format!("/{}", groups.as_str());
    let is_bare = || prepared.iter().all(|group| group.is_dir() && below(group).is_empty());
    let instance = Setup::default().flags(&["--cgroup-parent", &parent]).start();
    assert!(!is_bare(), "the control");
    drop(instance.stop());
    assert!(is_bare(), "{prepared:?}");
    if Need::UnifiedCgroups.is_there() || !Need::OrdinaryUsers.is_there() {
        return;
    }
    let user = OrdinaryUser::without_ids();
    for group in &prepared {
        std::os::unix::fs::chown(group, Some(user.uid()), Some(user.gid())).unwrap();
    }
    let line = ["doctor", "--cgroup-parent", &parent, "--accept-unavailable", "identity.unprivileged"];
    let done = run(&mut user.toolcell(&line)).expect_code(0);
    assert!(is_bare(), "{prepared:?}: {}", done.text());
}
