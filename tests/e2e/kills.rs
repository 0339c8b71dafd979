//! Programs that do not want to end, and what is left after them: nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use toolcell_tests::{
    Instance, Need, Process, Request, Running, descriptors_of, eventually, mount_lines, needs, status_field, wait_gone,
};
use toolcell_types::{Answer, Verdict};

const MIB: u64 = 1 << 20;

/// What an instance holds on to while no call runs.
#[derive(Debug)]
pub(crate) struct Holdings {
    mounts: Vec<String>,
    cgroups: Vec<String>,
    processes: Vec<u32>,
    descriptors: BTreeMap<u32, usize>,
    watches: usize,
    files: Vec<String>,
}

impl Holdings {
    fn of(instance: &Instance) -> Self {
        let parts = [instance.launcher(), instance.daemon(), instance.signer()];
        let mut mounts = mount_lines("self");
        for part in &parts {
            mounts.extend(mount_lines(&part.pid.to_string()));
        }
        let group = format!("/{}", instance.name());
        let ids: Vec<u32> = parts.iter().map(|part| part.pid).collect();
        let ours = |process: &Process| {
            ids.contains(&process.pid) || ids.contains(&process.parent) || process.cgroups.contains(&group)
        };
        let mut processes: Vec<u32> = Process::all().into_iter().filter(ours).map(|process| process.pid).collect();
        processes.sort_unstable();
        let descriptors = ids.iter().map(|pid| (*pid, descriptors_of(*pid).len())).collect();
        let watches = ids.iter().map(|pid| watches_of(*pid)).sum();
        Self { mounts, cgroups: groups(instance), processes, descriptors, watches, files: files_of(instance) }
    }

    /// Waits until the instance holds no more than this. Connections close a moment after their answer.
    pub(crate) fn are_back(&self, instance: &Instance) {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let more = Self::of(instance).beyond(self);
            if more.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "more than before: {more:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What of this is not in `before`.
    fn beyond(&self, before: &Self) -> Vec<String> {
        let new = |now: &[String], before: &[String]| -> Vec<String> {
            now.iter().filter(|item| !before.contains(item)).cloned().collect()
        };
        let mut more = new(&self.mounts, &before.mounts);
        more.extend(new(&self.cgroups, &before.cgroups));
        more.extend(new(&self.files, &before.files));
        // By their number: which process waits to open the next mounts may have changed.
        let new = self.processes.iter().filter(|pid| !before.processes.contains(pid));
        let has_more = self.processes.len() > before.processes.len();
        more.extend(new.filter(|_| has_more).map(|pid| format!("pid {pid}")));
        more.extend((self.watches > before.watches).then(|| format!("{} watches of inotify", self.watches)));
        for (pid, count) in &self.descriptors {
            let least = before.descriptors.get(pid).copied().unwrap_or(0);
            more.extend((*count > least).then(|| format!("{count} descriptors of {pid}, before {least}")));
        }
        more
    }
}

/// How many files a process has inotify watch.
fn watches_of(pid: u32) -> usize {
    let infos = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().filter_map(Result::ok);
    let texts = infos.filter_map(|info| std::fs::read_to_string(info.path()).ok());
    texts.map(|text| text.lines().filter(|line| line.starts_with("inotify ")).count()).sum()
}

fn groups(instance: &Instance) -> Vec<String> {
    instance.cell_groups().into_iter().map(|dir| dir.display().to_string()).collect()
}

/// Files in places that all share, which belong to one of the instance's users or carry its name.
fn files_of(instance: &Instance) -> Vec<String> {
    use std::os::unix::fs::MetadataExt as _;
    let dirs = ["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", "/run/toolcell", "/run/toolcell/uids"];
    let entries = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().filter_map(Result::ok);
    let base = instance.uid_base();
    let ours = entries.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owned = entry.metadata().is_ok_and(|meta| (base..base + 65_536).contains(&meta.uid()));
        owned || name.contains(instance.name()) || name == base.to_string()
    });
    let mut names: Vec<String> = ours.map(|entry| entry.path().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// An instance that has run one call, so that everything it makes once is made, and what it holds then.
pub(crate) fn settled() -> (Instance, Holdings) {
    let instance = Instance::start();
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
    let holdings =
        eventually("the instance to be quiet", || Some(Holdings::of(&instance)).filter(|all| all.cgroups.is_empty()));
    (instance, holdings)
}

/// Runs a request to its end and sees that its tree is gone when the answer is there.
fn ends_clean(instance: &Instance, request: &Request) -> Answer {
    let answer = instance.call(request);
    assert_eq!(groups(instance), Vec::<String>::new(), "the answer leaves after the tree is gone");
    answer
}

#[test]
fn a_program_that_ignores_every_signal_ends_at_the_wall_limit() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let answer = ends_clean(&instance, &Request::program("waits", &["deaf"]).limits(json!({ "wall_ms": 200 })));
    assert_eq!(answer.verdict, Verdict::WallLimit);
    before.are_back(&instance);
}

#[test]
fn children_left_behind_die_with_the_main_process() {
    needs!(Need::Root);
    let (instance, before) = settled();
    for what in ["daemon", "stdout", "stopped", "chain"] {
        let answer = ends_clean(&instance, &Request::program("leaves_children", &[what]));
        assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{what}");
        assert!(answer.usage.left_running_killed.unwrap() >= 1, "{what}: {:?}", answer.usage);
        let wall_us = answer.usage.wall_us.unwrap();
        assert!(wall_us < 5_000_000, "{what}: the answer does not wait for them: {wall_us}");
        before.are_back(&instance);
    }
}

#[test]
fn children_left_behind_die_at_the_wall_limit_and_on_cancel() {
    needs!(Need::Root);
    let (instance, before) = settled();
    for what in ["daemon", "stdout", "stopped", "chain"] {
        let request = Request::program("leaves_children", &[what, "stay"]);
        let answer = ends_clean(&instance, &request.limits(json!({ "wall_ms": 300 })));
        assert_eq!(answer.verdict, Verdict::WallLimit, "{what}");

        let running = Running::until_up(&instance, &Request::program("leaves_children", &[what, "stay"]));
        // The chain is quicker than any look at /proc.
        let least = if what == "chain" { 2 } else { 3 };
        let tree = eventually("init, main and child", || Some(running.processes()).filter(|tree| tree.len() >= least));
        assert_eq!(running.cancel().status() / 100, 2);
        assert_eq!(running.answer().verdict, Verdict::Cancelled, "{what}");
        wait_gone(&tree);
        before.are_back(&instance);
    }
}

#[test]
fn a_program_that_stops_itself_ends_at_the_wall_limit() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let answer = ends_clean(&instance, &Request::program("dies", &["19"]).limits(json!({ "wall_ms": 300 })));
    assert_eq!(answer.verdict, Verdict::WallLimit);
    before.are_back(&instance);
}

#[test]
fn a_fork_bomb_ends_at_its_limits_and_the_daemon_serves_on() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let bomb = Request::program("fork_bomb", &["stay"]).limits(json!({ "wall_ms": 1500, "pids": 64 }));
    let running = Running::submit(&instance, &bomb);
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
    let answer = running.answer();
    assert_eq!(answer.verdict, Verdict::WallLimit);
    assert!(answer.usage.forks_refused.unwrap() > 0, "{:?}", answer.usage);
    before.are_back(&instance);
}

#[test]
fn a_memory_hog_dies_and_nobody_else() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let neighbour = Running::until_up(&instance, &Request::program("waits", &[]));
    let hog = Request::program("memory_hog", &["main"]).limits(json!({ "memory_bytes": 16 * MIB }));
    assert_eq!(instance.call(&hog).verdict, Verdict::MemoryLimit);
    assert!(neighbour.process("waits").is_alive());
    assert_eq!(neighbour.cancel().status() / 100, 2);
    assert_eq!(neighbour.answer().usage.oom_kills, Some(0));
    before.are_back(&instance);
}

#[test]
fn standard_input_that_nobody_reads_holds_nothing_up() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let input = "i".repeat(3 << 20);
    let unread = Request::shell("echo done").with("stdin", json!(input));
    let answer = ends_clean(&instance, &unread);
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 });
    assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "done\n");
    let read = ends_clean(&instance, &Request::shell("wc -c").with("stdin", json!(input)));
    assert_eq!(serde_json::to_value(&read.stdout).unwrap(), format!("{}\n", 3 << 20));
    before.are_back(&instance);
}

#[test]
fn a_hundred_megabytes_without_a_newline_leave_the_daemon_s_memory_flat() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let peak = |instance: &Instance| -> u64 {
        let text = status_field(instance.daemon().pid, "VmHWM").unwrap();
        text.trim_end_matches(" kB").parse().unwrap()
    };
    let warm = Request::program("floods", &["8000000"]);
    assert_eq!(instance.call(&warm).verdict, Verdict::Exited { exit_code: 0 });
    let at_first = peak(&instance);
    let size: u64 = 100_000_000;
    let flood = Request::program("floods", &[&size.to_string()]).limits(json!({ "output_limit_bytes": 256 * MIB }));
    let answer = ends_clean(&instance, &flood);
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 });
    assert_eq!(answer.usage.stdout_bytes, Some(size));
    let dropped = answer.truncated.stdout.expect("most was not kept");
    assert_eq!(dropped.dropped_bytes, size - MIB);
    assert_eq!(dropped.sha256.hex(), sha256_of_x(size), "the digest covers all of it");
    let grown_kib = peak(&instance) - at_first;
    assert!(grown_kib < 16 * 1024, "the daemon grew by {grown_kib} KiB");
    before.are_back(&instance);
}

fn sha256_of_x(size: u64) -> String {
    use sha2::Digest as _;
    let block = vec![b'x'; 1_000_000];
    let mut hash = sha2::Sha256::new();
    for _ in 0..size / 1_000_000 {
        hash.update(&block);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn timers_fire_while_the_daemon_is_stopped() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let daemon = Pid::from_raw(i32::try_from(instance.daemon().pid).unwrap());
    for (program, limits, verdict) in [
        (Request::program("waits", &["deaf"]), json!({ "wall_ms": 3000 }), Verdict::WallLimit),
        (
            Request::shell("echo up; while :; do :; done"),
            json!({ "cpu_ms": 1500, "wall_ms": 60_000 }),
            Verdict::CpuLimit,
        ),
    ] {
        let running = Running::until_up(&instance, &program.limits(limits));
        let tree = running.processes();
        assert!(tree.len() >= 2, "{tree:?}");
        kill(daemon, Signal::SIGSTOP).unwrap();
        wait_gone(&tree);
        assert_eq!(status_field(instance.daemon().pid, "State").unwrap().chars().next(), Some('T'));
        kill(daemon, Signal::SIGCONT).unwrap();
        assert_eq!(running.answer().verdict, verdict);
    }
    before.are_back(&instance);
}

#[test]
fn a_killed_init_takes_its_cell_along_and_the_instance_serves_on() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let running = Running::until_up(&instance, &Request::program("waits", &["deaf"]));
    let tool = running.process("waits");
    let init = running.processes().into_iter().find(|process| process.pid == tool.parent).expect("its parent");
    kill(Pid::from_raw(i32::try_from(init.pid).unwrap()), Signal::SIGKILL).unwrap();
    let answer = running.answer();
    assert_eq!(answer.verdict, Verdict::Internal, "{:?}", answer.error);
    assert!(!tool.is_alive() && !init.is_alive());
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
    before.are_back(&instance);
}

#[test]
fn thirty_calls_side_by_side_leave_nothing() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let kinds = [
        Request::program("leaves_children", &["daemon"]),
        Request::program("leaves_children", &["chain"]),
        Request::program("floods", &["3000000"]),
        Request::program("dies", &["9"]),
        Request::program("fork_bomb", &["exit"]),
    ];
    std::thread::scope(|scope| {
        for n in 0..30 {
            let request = kinds[n % kinds.len()].clone().id(&toolcell_tests::fresh_id());
            let instance = &instance;
            scope.spawn(move || {
                let response = eventually("a place in the queue", || {
                    let response = instance.post(&request);
                    (response.status() != 503).then_some(response)
                });
                response.answer()
            });
        }
    });
    before.are_back(&instance);
}

#[test]
fn a_clock_of_a_cell_that_is_gone_is_not_that_of_the_next_one() {
    needs!(Need::Root);
    let instance = Instance::start();
    let launcher = nix::unistd::Pid::from_raw(i32::try_from(instance.launcher().pid).unwrap());
    let signal = |pid, signal| nix::sys::signal::kill(pid, signal).unwrap();
    // In one batch the launcher is to see the end of the first cell's init, the plan of the second, and then the first
    // one's alarm.
    let first =
        Running::until_up(&instance, &Request::shell("echo up; exec sleep 60").limits(json!({ "wall_ms": 1000 })));
    let init = first.processes().into_iter().find(|process| process.name.starts_with("toolcell")).unwrap();
    signal(launcher, nix::sys::signal::Signal::SIGSTOP);
    signal(nix::unistd::Pid::from_raw(i32::try_from(init.pid).unwrap()), nix::sys::signal::Signal::SIGKILL);
    std::thread::sleep(Duration::from_millis(1500));
    let answer = std::thread::scope(|scope| {
        let second = scope.spawn(|| instance.call(&Request::exec(&["true"])));
        std::thread::sleep(Duration::from_millis(300));
        signal(launcher, nix::sys::signal::Signal::SIGCONT);
        second.join().unwrap()
    });
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{:?}", answer.error);
}
