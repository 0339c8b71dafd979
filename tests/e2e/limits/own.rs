//! Limits and figures are those of one call: neither a neighbour's nor an earlier one's are felt or counted.

use serde_json::json;
use toolcell_tests::{Instance, Need, Request, Running, needs};
use toolcell_types::{Answer, Verdict};

use super::{MIB, observed, roomy, used_us, well};

/// Both at once; each holds what it has until the other has its own.
fn at_once(instance: &Instance, requests: [Request; 2]) -> [Answer; 2] {
    std::thread::scope(|scope| {
        let calls = requests.map(|request| scope.spawn(move || instance.call(&request)));
        calls.map(|call| call.join().unwrap())
    })
}

#[test]
fn two_scratches_and_two_groups_side_by_side_each_have_all_of_their_own() {
    needs!(Need::Root);
    let instance = super::instance();
    let gate = tempfile::tempdir_in(instance.home().dir()).unwrap();
    std::fs::set_permissions(gate.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let limits = json!({ "memory_bytes": 32 * MIB, "tmp_bytes": 24 * MIB, "pids": 8, "tmp_inodes": 4096 });
    let limits = roomy(limits);
    // What is on the scratch stays there, and is memory, until the call ends; both wait for the same gate.
    let line = "/programs/uses_memory tmp 20 && echo up && until [ -e /gate/open ]; do sleep 0.02; done";
    let request = || {
        Request::shell(line)
            .mount(&toolcell_tests::programs_dir().to_string_lossy(), toolcell_tests::PROGRAMS_INSIDE)
            .mount(&gate.path().to_string_lossy(), "/gate")
            .limits(limits.clone())
    };
    let running = [request(), request()].map(|request| Running::until_up(&instance, &request));
    std::fs::write(gate.path().join("open"), "").unwrap();
    for call in running {
        let answer = call.answer();
        well(&answer);
        assert!(answer.usage.memory_peak_bytes.unwrap() >= 20 * MIB, "40 MiB together: {:?}", answer.usage);
    }
}

#[test]
fn processes_are_not_counted_by_user() {
    needs!(Need::Root);
    let instance = super::instance();
    let request = || Request::program("uses_pids", &["threads", "100"]).limits(roomy(json!({ "pids": 102 })));
    for answer in at_once(&instance, [request(), request()]) {
        well(&answer);
    }
    // RLIMIT_NPROC counts all processes of a user; the cell's is not it.
    let answer = instance.call(&Request::shell("grep 'Max processes' /proc/self/limits").limits(json!({ "pids": 5 })));
    let shown = super::text(&answer);
    let soft = shown.split_whitespace().nth(2).unwrap_or_default().to_owned();
    assert!(soft == "unlimited" || soft.parse::<u64>().unwrap() > 100, "{shown}");
}

#[test]
fn one_call_s_wait_for_its_share_is_not_the_other_s() {
    needs!(Need::Root);
    let instance = super::instance();
    let burn = |cpu_millis: u64| {
        Request::program("burns", &["150"]).limits(json!({ "cpu_millis": cpu_millis, "wall_ms": 60_000 }))
    };
    let [slow, quick] = at_once(&instance, [burn(50), burn(4000)]);
    well(&slow);
    well(&quick);
    assert!(slow.usage.throttled_us.unwrap() > 0, "{:?}", slow.usage);
    assert_eq!(quick.usage.throttled_us, Some(0), "{:?}", quick.usage);
}

#[test]
fn figures_begin_anew_with_every_call() {
    needs!(Need::Root);
    let instance = super::instance();
    let limits = roomy(json!({ "memory_bytes": 48 * MIB, "pids": 32, "cpu_millis": 500 }));
    let small = || instance.call(&Request::exec(&["true"]).limits(limits.clone()));
    let before = small();
    let much = "/programs/memory_hog child 0; /programs/uses_pids forks 60 > /dev/null; /programs/burns 300; exit 0";
    let large = Request::shell(much)
        .mount(&toolcell_tests::programs_dir().to_string_lossy(), toolcell_tests::PROGRAMS_INSIDE)
        .limits(limits.clone());
    let large = instance.call(&large);
    assert_eq!(large.verdict, Verdict::Exited { exit_code: 0 }, "{large:?}");
    let usage = &large.usage;
    assert!(usage.oom_kills.unwrap() >= 1 && usage.forks_refused.unwrap() >= 1, "{usage:?}");
    assert!(usage.memory_peak_bytes.unwrap() > 40 * MIB && used_us(&large) >= 300_000, "{usage:?}");
    for answer in [before, small()] {
        well(&answer);
        let usage = &answer.usage;
        assert!(usage.memory_peak_bytes.unwrap() < 16 * MIB, "{usage:?}");
        assert!(used_us(&answer) < 300_000, "{usage:?}");
        if let Some(peak) = usage.pids_peak {
            assert_eq!(peak, 2, "the init and the program");
        }
    }
}

#[test]
fn swap_is_within_the_limit_of_memory_or_the_report_says_that_nobody_counts_it() {
    needs!(Need::Root);
    let instance = super::instance();
    let answer = instance.call(&Request::exec(&["true"]).limits(json!({ "memory_bytes": 64 * MIB })));
    let facts = observed(&answer, "cgroup.memory");
    let read = |name: &str| facts.get(name).cloned();
    let counted = match facts["version"].as_u64() {
        Some(1) => read("memory.memsw.limit_in_bytes") == Some(json!(64 * MIB)),
        _ => read("memory.swap.max") == Some(json!(0)),
    };
    assert!(counted || read("swap") == Some(json!("not counted by this kernel")), "{facts}");
    // The control: the kernel's own file in a group of the same kind.
    let group = instance.cgroup_dir("memory");
    let has_file = ["memory.memsw.limit_in_bytes", "memory.swap.max"].iter().any(|name| group.join(name).exists());
    assert_eq!(counted, has_file, "{}", group.display());
}
