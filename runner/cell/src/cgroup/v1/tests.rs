use super::*;

const MOUNTINFO: &str = "\
30 25 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct
32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,memory
";
/// One group of each hierarchy, bound into a container with a cgroup namespace of its own.
const BOUND: &str = "\
127 115 0:32 /../../labs /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
128 112 0:29 /../../labs /groups/cpu rw - cgroup cgroup rw,cpu,cpuacct
";

fn lines(mountinfo: &str) -> Vec<Mount> {
    crate::mountinfo::mounts(mountinfo.as_bytes()).collect()
}

fn path(mountinfo: &str, controller: &str) -> Option<PathBuf> {
    hierarchy(&lines(mountinfo), controller).map(|dir| dir.path)
}

#[test]
fn hierarchies_are_found_by_controller_not_by_name() {
    assert_eq!(path(MOUNTINFO, "memory"), Some(PathBuf::from("/sys/fs/cgroup/memory")));
    assert_eq!(path(MOUNTINFO, "cpuacct"), Some(PathBuf::from("/sys/fs/cgroup/cpu,cpuacct")));
    assert_eq!(path(BOUND, "cpuacct"), Some(PathBuf::from("/groups/cpu")));
    assert_eq!(path(MOUNTINFO, "pids"), None);
    assert_eq!(path(MOUNTINFO, "cpu,cpuacct"), None);
}

#[test]
fn what_no_hierarchy_carries_is_named() {
    assert_eq!(mounts(&lines(MOUNTINFO)).unwrap_err(), ["pids", "freezer"]);
}

fn mounted(mountinfo: &str) -> Group {
    use Controller::{Cpu, Cpuacct, Memory};
    let dir = |name| hierarchy(&lines(mountinfo), name).unwrap().below("/toolcell/").below("i").below("cell-1");
    let dirs = vec![(vec![Memory], dir("memory")), (vec![Cpu, Cpuacct], dir("cpu"))];
    Group { dirs, counts_swap: true }
}

#[test]
fn membership_is_read_for_every_controller() {
    let group = mounted(MOUNTINFO);
    assert!(group.is_in("4:memory:/toolcell/i/cell-1\n3:cpu,cpuacct:/toolcell/i/cell-1\n"));
    assert!(!group.is_in("4:memory:/toolcell/i/cell-1\n3:cpu,cpuacct:/\n"));
    assert!(!group.is_in("4:memory:/toolcell/i/cell-1\n"));
    assert!(!group.is_in("4:memory:/toolcell/i/cell-11\n3:cpu,cpuacct:/toolcell/i/cell-1\n"));
    assert!(!group.is_in("4:memory:/i/cell-1\n3:cpu,cpuacct:/i/cell-1\n"), "the whole name counts");
}

#[test]
fn a_group_below_one_that_was_bound_into_a_container_is_named_as_the_kernel_names_it() {
    let group = mounted(BOUND);
    let at = |name: &str| format!("4:memory:{name}\n3:cpu,cpuacct:{name}\n");
    assert!(group.is_in(&at("/../../labs/toolcell/i/cell-1")));
    assert!(!group.is_in(&at("/toolcell/i/cell-1")));
    assert_eq!(group.dirs[1].1.path, Path::new("/groups/cpu/toolcell/i/cell-1"));
}

fn limits() -> Limits {
    Limits { memory_bytes: 10_000_384, pids: 17, cpu_millis: 1500, ..Limits::default() }
}

/// A directory with files as the kernel has them in a group; plain files keep what is written.
fn group(files: &[&str]) -> (tempfile::TempDir, Group) {
    let dir = tempfile::tempdir().unwrap();
    for name in files {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let counts_swap = files.contains(&MEMORY_AND_SWAP);
    let plain = Dir { path: dir.path().to_owned(), shown: "/toolcell/i/cell-1".to_owned() };
    let group = Group { dirs: vec![(Controller::ALL.to_vec(), plain)], counts_swap };
    (dir, group)
}

const FILES: [&str; 4] = ["memory.limit_in_bytes", "pids.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"];

#[test]
fn limits_are_written_and_read_back_swap_as_well_where_it_is_counted() {
    let whole = Limits { memory_bytes: 10_002_432, ..limits() };
    let (dir, plain) = group(&FILES);
    plain.limit(&whole, ControlSet::EMPTY).unwrap();
    let written = FILES.map(|name| fs::read_to_string(dir.path().join(name)).unwrap());
    assert_eq!(written, ["10002432", "17", "150000", "100000"]);
    assert!(!plain.counts_swap() && !dir.path().join(MEMORY_AND_SWAP).exists(), "nothing is made that was not there");

    let (dir, counted) = group(&[&FILES[..], &[MEMORY_AND_SWAP]].concat());
    counted.limit(&whole, ControlSet::EMPTY).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(MEMORY_AND_SWAP)).unwrap(), "10002432");
    let names: Vec<_> = counted.memory_limits(&whole).unwrap().into_iter().map(|back| back.name).collect();
    assert_eq!(names, ["memory.limit_in_bytes", MEMORY_AND_SWAP]);
}

#[test]
fn a_limit_that_was_taken_and_reads_back_otherwise_does_not_agree() {
    // A plain file does not round to pages, as the kernel does and as is expected of it.
    let (_dir, rounded) = group(&FILES);
    rounded.limit(&limits(), ControlSet::EMPTY).unwrap();
    let memory = &rounded.memory_limits(&limits()).unwrap()[0];
    assert_eq!((&memory.got, &memory.wanted), (&Fact::from(10_000_384_u64), &Fact::from(9_998_336_u64)));
    assert!(!memory.agrees());
    for (name, other) in [("pids.max", "32768"), ("cpu.cfs_quota_us", "200000"), ("cpu.cfs_period_us", "50000")] {
        let whole = Limits { memory_bytes: 10_002_432, ..limits() };
        let (dir, group) = group(&FILES);
        group.limit(&whole, ControlSet::EMPTY).unwrap();
        fs::write(dir.path().join(name), other).unwrap();
        let backs = [group.memory_limits(&whole), group.cpu_limits(&whole), group.pids_limits(&whole)];
        let backs: Vec<ReadBack> = backs.into_iter().flat_map(Result::unwrap).collect();
        let not_kept: Vec<&str> = backs.iter().filter(|back| !back.agrees()).map(|back| back.name).collect();
        assert_eq!(not_kept, [name]);
    }
}

#[test]
fn a_file_that_takes_everything_and_keeps_nothing_is_no_limit() {
    let (dir, group) = group(&FILES);
    fs::remove_file(dir.path().join("pids.max")).unwrap();
    std::os::unix::fs::symlink("/dev/null", dir.path().join("pids.max")).unwrap();
    let whole = Limits { memory_bytes: 10_002_432, ..limits() };
    group.limit(&whole, ControlSet::EMPTY).unwrap();
    let pids = &group.pids_limits(&whole).unwrap()[0];
    assert!(!pids.agrees() && pids.got == Fact::from(""), "{pids:?}");
}
