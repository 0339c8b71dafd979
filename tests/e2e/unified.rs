//! What only cgroup version 2 has: one tree, a group of our own to hand down, no processes in inner groups.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolcell_tests::{
    Instance, Need, OPENER, Process, Request, Running, Setup, cgroup_roots, command, eventually, fresh_id,
    groups_named, needs, program_on_host, run,
};
use toolcell_types::Verdict;

/// A group at the top, as a service manager or a container engine makes one; removed with all in it at the end.
struct Place(PathBuf);

impl Place {
    fn make() -> Self {
        let root = cgroup_roots().into_iter().find(toolcell_tests::CgroupRoot::is_unified).unwrap();
        let control = root.path.join("cgroup.subtree_control");
        std::fs::write(control, "+memory +cpu +pids").unwrap();
        let dir = root.path.join(fresh_id());
        std::fs::create_dir(&dir).unwrap();
        Self(dir)
    }

    /// Words that start a program in this group, by way of `more`.
    fn enter(&self, more: &str) -> [String; 3] {
        let script = format!("echo $$ > {}/cgroup.procs; {more} exec \"$0\" \"$@\"", self.0.display());
        ["/bin/sh".to_owned(), "-c".to_owned(), script]
    }

    fn start(&self, more: &str) -> Instance {
        let words = self.enter(more);
        Setup::default().wrapped(&words.each_ref().map(String::as_str)).start()
    }

    fn procs(&self, below: &str) -> Vec<u32> {
        let text = std::fs::read_to_string(self.0.join(below).join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::write(self.0.join("cgroup.kill"), "1").unwrap();
        eventually("the group to be removed", || std::fs::remove_dir(&self.0).ok());
    }
}

fn waits() -> Request {
    Request::program("waits", &["deaf"]).limits(json!({ "wall_ms": 60_000 }))
}

/// The group of the one cell that runs.
fn cell(running: &Running) -> String {
    running.process("waits").cgroups.trim().trim_start_matches("0::").to_owned()
}

fn cancel(running: &Running) {
    assert_eq!(running.cancel().status() / 100, 2);
    assert_eq!(running.answer().verdict, Verdict::Cancelled);
}

#[test]
fn a_group_that_is_ours_alone_holds_the_cells_and_us_in_a_leaf() {
    needs!(Need::UnifiedCgroups);
    let place = Place::make();
    let instance = place.start("");
    let running = Running::until_up(&instance, &waits());
    let own = place.0.file_name().unwrap().to_str().unwrap();
    assert_eq!(cell(&running), format!("/{own}/{}/cell-1", instance.name()));
    assert_eq!(place.procs(""), Vec::<u32>::new(), "no process in an inner group");
    let launcher = instance.launcher().pid;
    let is_opener = |process: &Process| process.parent == launcher && process.name == OPENER;
    let opener = eventually("the opener of mounts", || Process::all().into_iter().find(is_opener));
    let mut parts = [launcher, instance.daemon().pid, instance.signer().pid, opener.pid];
    let mut inside = place.procs("runner");
    parts.sort_unstable();
    inside.sort_unstable();
    assert_eq!(inside, parts);
    cancel(&running);
    drop(instance.stop());
    let below: Vec<_> = std::fs::read_dir(&place.0).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).collect();
    assert!(below.is_empty(), "all that was made is removed: {below:?}");
    assert_eq!(std::fs::read_to_string(place.0.join("cgroup.subtree_control")).unwrap().trim(), "");
}

#[test]
fn a_group_with_somebody_else_in_it_is_left_alone() {
    needs!(Need::UnifiedCgroups);
    let place = Place::make();
    let instance = place.start("sleep 60 &");
    let running = Running::until_up(&instance, &waits());
    assert_eq!(cell(&running), format!("/toolcell/{}/cell-1", instance.name()));
    assert!(!place.0.join("runner").exists());
    cancel(&running);
}

#[test]
fn a_container_s_top_group_holds_the_cells() {
    needs!(Need::UnifiedCgroups, Need::Tool("unshare"));
    let place = Place::make();
    let more = "exec /usr/bin/unshare --mount --cgroup --propagation private -- /bin/sh -c '\
                umount /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec \"$0\" \"$@\"' \"$0\" \"$@\";";
    let instance = place.start(more);
    let running = Running::until_up(&instance, &waits());
    let own = place.0.file_name().unwrap().to_str().unwrap();
    assert_eq!(cell(&running), format!("/{own}/{}/cell-1", instance.name()));
    assert_eq!(place.procs("runner").len(), 4, "launcher, daemon, signer, and who opens mounts");
    cancel(&running);
}

#[test]
fn a_group_that_was_bound_over_the_whole_tree_holds_the_cells_of_who_is_not_in_it() {
    needs!(Need::UnifiedCgroups, Need::Tool("unshare"));
    let place = Place::make();
    // As in a container that has the host's cgroup namespace, and one of its groups.
    let script = format!("set -e; mount --bind {} /sys/fs/cgroup; exec \"$0\" \"$@\"", place.0.display());
    let words = ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", &script];
    let instance = Setup::default().wrapped(&words).start();
    let running = Running::until_up(&instance, &waits());
    let own = place.0.file_name().unwrap().to_str().unwrap();
    assert_eq!(cell(&running), format!("/{own}/toolcell/{}/cell-1", instance.name()));
    cancel(&running);
    drop(instance.stop());
}

#[test]
fn a_parent_with_processes_is_refused_with_who_they_are() {
    needs!(Need::UnifiedCgroups);
    let place = Place::make();
    let [shell, flag, script] = place.enter("");
    let mut sleeper = command(shell).args([flag, script, "sleep".to_owned(), "60".to_owned()]).spawn().unwrap();
    eventually("the sleeper to be in the group", || place.procs("").contains(&sleeper.id()).then_some(()));
    let own = place.0.file_name().unwrap().to_str().unwrap();
    let refused = Setup::default().flags(&["--cgroup-parent", own]).fails_to_start();
    assert_ne!(refused.code, 0);
    for said in [&format!("{} sleep", sleeper.id()), "memory, cpu, pids", "--cgroup-parent", "Delegate=yes"] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    drop(std::fs::remove_dir_all(place.0.join("none")));
}

#[test]
fn what_an_earlier_start_left_under_another_parent_is_removed() {
    needs!(Need::UnifiedCgroups);
    let instance = Setup::default().flags(&["--cgroup-parent", "toolcell"]).start();
    let name = instance.name().to_owned();
    let dir = instance.cgroup_dir("memory");
    let home = instance.stop();
    // As a killed start leaves it, where nobody looks by himself: a cell's group with a process in it.
    let place = Place::make();
    let left = place.0.join("deep").join(&name).join("cell-7");
    std::fs::create_dir_all(&left).unwrap();
    let stranger = place.0.join("deep/runner");
    std::fs::create_dir(&stranger).unwrap();
    let script = format!("echo $$ > {}/cgroup.procs; exec sleep 60", left.display());
    let mut sleeper = command("/bin/sh").args(["-c", &script]).spawn().unwrap();
    let procs = || std::fs::read_to_string(left.join("cgroup.procs")).unwrap_or_default();
    eventually("the sleeper to be in the group", || procs().contains(&sleeper.id().to_string()).then_some(()));
    let instance = home.start();
    assert_eq!(groups_named(&name), [dir]);
    assert!(!sleeper.wait().unwrap().success(), "killed");
    assert!(Path::new(&stranger).is_dir(), "nobody else's");
    drop(instance.stop());
    std::fs::remove_dir(&stranger).unwrap();
    std::fs::remove_dir(place.0.join("deep")).unwrap();
}

#[test]
fn a_kernel_that_cannot_give_birth_in_a_group_has_the_child_join_it() {
    needs!(Need::UnifiedCgroups);
    let wrapper = program_on_host("without_clone_into").to_string_lossy().into_owned();
    assert_eq!(run(command(&wrapper).arg("true")).code, 0, "the control: the wrapper itself works");
    let instance = Setup::default().wrapped(&[&wrapper]).start();
    let answer = instance.call(&Request::exec(&["true"]));
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 });
    for control in ["cgroup.memory", "cgroup.cpu", "cgroup.pids", "namespace.cgroup"] {
        let item = answer.controls.iter().find(|item| item["id"] == control).unwrap();
        assert_eq!(item["state"], "enforced", "{item}");
    }
}

#[test]
fn doctor_in_a_group_of_its_own_tells_the_truth_and_leaves_the_group_as_it_was() {
    needs!(Need::UnifiedCgroups);
    let place = Place::make();
    let before = std::fs::read_to_string(place.0.join("cgroup.subtree_control")).unwrap();
    let words = place.enter("");
    let home = Setup::default().wrapped(&words.each_ref().map(String::as_str)).home();
    let report: toolcell_types::doctor::DoctorReport =
        serde_json::from_value(run(&mut home.doctor(&["--json"])).expect_code(0).json()).unwrap();
    assert_eq!(std::fs::read_to_string(place.0.join("cgroup.subtree_control")).unwrap(), before);
    let left: Vec<_> = std::fs::read_dir(&place.0).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.iter().all(|path| !path.is_dir()), "{left:?}");
    crate::doctor::same(&report, &home.start().call(&Request::exec(&["true"])));
}
