//! Instances and their groups side by side: each has its own, and nobody sweeps another's. On either cgroup version.

use std::path::Path;

use serde_json::json;
use toolcell_tests::{Instance, Need, Request, Running, Setup, groups_named, needs};
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
    assert_eq!(again.cell_groups(), Vec::<std::path::PathBuf>::new(), "swept at its start");
    assert_eq!(lost.answer().verdict, Verdict::Lost);
    assert_eq!(other.cell_groups(), of_other, "the other's is as it was");
    assert!(kept.process("waits").is_alive());
    assert_eq!(kept.cancel().status() / 100, 2);
    assert_eq!(kept.answer().verdict, Verdict::Cancelled);
}

#[test]
fn the_operator_s_parent_holds_the_groups() {
    needs!(Need::Root);
    let instance = Setup::default().flags(&["--cgroup-parent", "/toolcell-labs/a"]).start();
    let running = Running::until_up(&instance, &waits());
    for dir in instance.cell_groups() {
        let parent = dir.parent().and_then(Path::parent).unwrap();
        assert!(parent.ends_with("toolcell-labs/a"), "{}", dir.display());
        let members = std::fs::read_to_string(dir.join("cgroup.procs")).unwrap();
        let tool = running.process("waits").pid.to_string();
        assert!(members.lines().any(|line| line == tool), "{}: {members}", dir.display());
    }
    assert_eq!(running.cancel().status() / 100, 2);
    assert_eq!(running.answer().verdict, Verdict::Cancelled);
    let name = instance.name().to_owned();
    drop(instance.stop());
    assert_eq!(groups_named(&name), Vec::<std::path::PathBuf>::new());
    // The parent's own parent is the operator's.
    for root in toolcell_tests::cgroup_roots() {
        drop(std::fs::remove_dir(root.path.join("toolcell-labs")));
    }
}
