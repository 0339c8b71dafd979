use super::*;

fn limits() -> Limits {
    Limits { memory_bytes: 10_000_000, pids: 17, cpu_millis: 1500, ..Limits::default() }
}

/// A directory with files as the kernel has them in a group; plain files keep what is written.
fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, Group) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let counts_swap = dir.path().join(SWAP_MAX).exists();
    let group = Group { dir: dir.path().to_owned(), shown: "/toolcell/i/cell-1".to_owned(), counts_swap };
    (dir, group)
}

#[test]
fn limits_are_written_as_the_kernel_takes_them() {
    let files = ["memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max"];
    let (dir, group) = group(&files.map(|name| (name, "")));
    group.limit(&limits(), toolcell_types::ControlSet::EMPTY).unwrap();
    let written = files.map(|name| fs::read_to_string(dir.path().join(name)).unwrap());
    assert_eq!(written, ["10000000", "0", "0", "17", "150000 100000"]);
    // A plain file does not round to pages as the kernel does: what is read back is not what is wanted.
    let back = group.memory_limits(&limits()).unwrap();
    assert_eq!((back[0].agrees(), back[1].agrees(), back[2].agrees()), (false, true, true));
}

#[test]
fn a_limit_that_the_kernel_has_otherwise_is_seen() {
    let (_dir, group) = group(&[("cpu.max", "max 100000\n"), ("pids.max", "17\n")]);
    let cpu = group.cpu_limits(&limits()).unwrap();
    assert_eq!((&cpu[0].wanted, &cpu[0].got), (&Fact::from("150000 100000"), &Fact::from("max 100000")));
    assert!(!cpu[0].agrees());
    assert!(group.pids_limits(&limits()).unwrap()[0].agrees());
}

#[test]
fn a_machine_that_does_not_count_swap_has_no_limit_for_it() {
    let (_dir, group) = group(&[("memory.max", "9998336\n"), ("memory.oom.group", "0\n")]);
    let names: Vec<_> = group.memory_limits(&limits()).unwrap().into_iter().map(|back| back.name).collect();
    assert_eq!(names, ["memory.max", "memory.oom.group"]);
}

#[test]
fn counters_are_read_by_their_keys_and_what_a_kernel_lacks_is_absent() {
    let stat = "usage_usec 5000\nuser_usec 3000\nsystem_usec 2000\nnr_periods 4\nnr_throttled 2\nthrottled_usec 77\n";
    let events = "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 1\n";
    let (_dir, group) =
        group(&[("cpu.stat", stat), ("memory.events", events), ("memory.peak", "4096\n"), ("pids.events", "max 8\n")]);
    let counters = group.counters();
    assert_eq!(counters.cpu.map(CpuTime::split), Some((3000, 2000)));
    assert_eq!((counters.throttled_us, counters.memory_peak_bytes), (Some(77), Some(4096)));
    assert_eq!((counters.oom_kills, counters.forks_refused, counters.pids_peak), (Some(2), Some(8), None));
}

#[test]
fn membership_is_exact() {
    let (_dir, group) = group(&[]);
    assert!(group.is_in("0::/toolcell/i/cell-1\n"));
    assert!(group.is_in("4:memory:/x\n0::/toolcell/i/cell-1\n"));
    for other in ["0::/toolcell/i/cell-11\n", "0::/\n", "1::/toolcell/i/cell-1\n", ""] {
        assert!(!group.is_in(other), "{other}");
    }
}

#[test]
fn a_group_is_gone_when_the_kernel_says_that_nothing_below_it_lives() {
    let (dir, group) =
        group(&[("cgroup.kill", ""), ("cgroup.procs", ""), ("cgroup.events", "populated 1\nfrozen 0\n")]);
    assert_eq!(group.kill_members().unwrap(), 1, "of another pid namespace, say");
    fs::write(dir.path().join("cgroup.events"), "populated 0\nfrozen 0\n").unwrap();
    assert_eq!(group.kill_members().unwrap(), 0);
    assert_eq!(fs::read_to_string(dir.path().join("cgroup.kill")).unwrap(), "1");
}
