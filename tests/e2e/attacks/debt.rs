//! Trees that cannot die at once: in debt with their processor quota, or with much to be freed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use toolcell_tests::{Instance, Need, Process, Request, Running, needs, within};
use toolcell_types::{Answer, Effect, Verdict};

const MIB: u64 = 1 << 20;

/// The cell that a process belongs to, by its group.
fn cell_of(process: &Process, instance: &Instance) -> Option<String> {
    let mark = format!("/toolcell/{}/", instance.name());
    let (_, rest) = process.cgroups.split_once(&mark)?;
    rest.split(['/', '\n']).next().map(str::to_owned)
}

/// Looks at all processes until told to stop: which user ids were in two cells at the same time.
fn shared_ids(instance: &Instance, stop: &AtomicBool) -> (BTreeSet<u32>, BTreeSet<String>) {
    let (mut shared, mut cells) = (BTreeSet::new(), BTreeSet::new());
    while !stop.load(Ordering::Relaxed) {
        let mut owners: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for process in Process::all() {
            let Some(cell) = cell_of(&process, instance) else { continue };
            let _new = cells.insert(cell.clone());
            // Before it takes its own ids a cell's process is root's.
            if process.uid >= instance.uid_base() {
                let _new = owners.entry(process.uid).or_default().insert(cell);
            }
        }
        shared.extend(owners.into_iter().filter(|(_, cells)| cells.len() > 1).map(|(uid, _)| uid));
        std::thread::sleep(Duration::from_millis(1));
    }
    (shared, cells)
}

/// Processor time of a call, microseconds.
fn used_us(answer: &Answer) -> u64 {
    answer.usage.cpu_user_us.unwrap() + answer.usage.cpu_system_us.unwrap()
}

#[test]
fn a_tree_in_debt_with_its_quota_ends_at_the_wall_limit_and_its_ids_stay_its_own() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limits = json!({
        "cpu_millis": 10, "wall_ms": 2000, "cpu_ms": 600_000, "pids": 128, "memory_bytes": 64 * MIB,
    });
    let request = |name, args: &[&str]| Request::program(name, args).limits(limits.clone());
    // Somebody is there all the time, others come and go.
    let neighbour = Running::until_up(&instance, &Request::program("waits", &[]).limits(json!({ "wall_ms": 120_000 })));
    let stop = AtomicBool::new(false);
    let (answer, took, seen) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| shared_ids(&instance, &stop));
        let started = Instant::now();
        let running = Running::until_up(&instance, &request("reads_urandom", &["6", "8"]));
        within(Duration::from_secs(20), "its end to come near", || {
            (started.elapsed() > Duration::from_millis(1500)).then_some(())
        });
        // While it dies they take ids.
        while serde_json::from_slice::<Answer>(&running.now().body).is_err() {
            assert!(started.elapsed() < Duration::from_secs(40), "no answer comes");
            let other = instance.call(&Request::exec(&["true"]).limits(json!({ "memory_bytes": 16 * MIB })));
            assert_eq!(other.verdict, Verdict::Exited { exit_code: 0 });
        }
        let answer = running.answer();
        let took = started.elapsed();
        stop.store(true, Ordering::Relaxed);
        (answer, took, watcher.join().unwrap())
    });
    assert_eq!(answer.verdict, Verdict::WallLimit, "{:?}", answer.error);
    assert_eq!(answer.effect, Effect::None, "the tree is gone: {:?}", answer.error);
    assert!(took < Duration::from_secs(15), "the reply took {took:?}");
    assert_eq!(neighbour.cancel().status() / 100, 2);
    assert_eq!(neighbour.answer().verdict, Verdict::Cancelled);
    let (used, plain) = (used_us(&answer), used_us(&instance.call(&request("spins", &[]))));
    assert!(used > 2 * plain, "the control: it used {used} µs, and what computes outside of the kernel {plain} µs");
    assert_eq!(seen.0, BTreeSet::new(), "no user id is in two cells at once");
    assert!(seen.1.len() > 1, "the control: other cells were seen beside it: {:?}", seen.1);
    assert_eq!(instance.cell_groups(), Vec::<PathBuf>::new());
    let left: Vec<Process> = Process::all().into_iter().filter(|p| cell_of(p, &instance).is_some()).collect();
    assert_eq!(left, Vec::new());
}

/// How many cells are filled: nearly as many as one daemon takes at once.
const CELLS: usize = 60;

#[test]
fn sixty_full_cells_that_end_at_once_hold_up_nobody_s_clock() {
    needs!(Need::Root);
    let instance = Instance::start();
    let gate = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(gate.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let host = gate.path().to_string_lossy().into_owned();
    let limits = json!({ "wall_ms": 300_000, "memory_bytes": 32 * MIB, "tmp_bytes": 16 * MIB });
    let fills = || Request::program("fills", &["2000", "/gate/open"]).mount(&host, "/gate").limits(limits.clone());
    let cells: Vec<Running> = (0..CELLS).map(|_| Running::submit(&instance, &fills())).collect();
    let printed = |id: &str| instance.get(&format!("/v1/calls/{id}/stdout")).text().contains("up");
    for cell in &cells {
        within(Duration::from_secs(60), "a cell to be full", || printed(&cell.call_id).then_some(()));
    }
    let wall = Request::program("waits", &[]).limits(json!({ "wall_ms": 1500, "memory_bytes": 16 * MIB }));
    let neighbour = Running::submit(&instance, &wall);
    assert_eq!(groups_of_cells(&instance), CELLS + 1, "the control: all are there");
    std::fs::write(gate.path().join("open"), "").unwrap();
    let answer = neighbour.answer();
    assert_eq!(answer.verdict, Verdict::WallLimit, "{:?}", answer.error);
    let wall_us = answer.usage.wall_us.unwrap();
    assert!(wall_us < 6_000_000, "its second and a half took {wall_us} µs");
    for cell in &cells {
        assert_eq!(cell.answer().verdict, Verdict::Exited { exit_code: 0 });
    }
    assert_eq!(instance.cell_groups(), Vec::<PathBuf>::new());
}

fn groups_of_cells(instance: &Instance) -> usize {
    let entries = std::fs::read_dir(instance.cgroup_dir("memory")).unwrap().filter_map(Result::ok);
    entries.filter(|entry| entry.path().is_dir()).count()
}
