use super::*;

const MOUNTINFO: &str = "\
22 1 254:1 / / rw - ext4 /dev/vda1 rw
30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
";
const BIND: &str = "30 22 0:26 /docker/a1 /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";

fn all(_top: &Path) -> String {
    "cpuset cpu io memory pids\n".to_owned()
}

fn mounted(mountinfo: &str) -> Mount {
    mount(&lines(mountinfo), all).unwrap()
}

fn lines(mountinfo: &str) -> Vec<crate::mountinfo::Mount> {
    crate::mountinfo::mounts(mountinfo.as_bytes()).collect()
}

fn own_group(relative: &str) -> Own {
    Own { relative: relative.to_owned(), is_root: false, lacks: Vec::new(), has_strangers: false }
}

#[test]
fn the_tree_is_found_where_it_is_mounted() {
    assert_eq!(mounted(MOUNTINFO), Mount { point: "/sys/fs/cgroup".into(), root: "/".to_owned() });
    assert_eq!(mounted(BIND).root, "/docker/a1");
    assert_eq!(mount(&lines("22 1 254:1 / / rw - ext4 /dev/vda1 rw\n"), all), Err(None));
    assert_eq!(mount(&lines(MOUNTINFO), |_top| "cpuset cpu".to_owned()), Err(Some(vec!["memory", "pids"])));
}

#[test]
fn of_two_mounts_the_one_with_the_controllers_is_taken() {
    let two = format!("29 22 0:25 / /empty rw - cgroup2 none rw\n{MOUNTINFO}");
    let controllers = |top: &Path| if top == Path::new("/empty") { String::new() } else { all(top) };
    assert_eq!(mount(&lines(&two), controllers).unwrap().point, Path::new("/sys/fs/cgroup"));
}

#[test]
fn our_own_group_is_found_below_what_is_mounted() {
    let whole = mounted(MOUNTINFO);
    assert_eq!(whole.relative("0::/\n").as_deref(), Some(""));
    assert_eq!(
        whole.relative("1:name=systemd:/x\n0::/system.slice/t.service\n").as_deref(),
        Some("system.slice/t.service")
    );
    assert_eq!(whole.relative("1:memory:/\n"), None);
    assert_eq!(whole.relative("0::/../other\n"), None, "outside of our cgroup namespace");
    let part = mounted(BIND);
    assert_eq!(part.relative("0::/docker/a1\n").as_deref(), Some(""));
    assert_eq!(part.relative("0::/docker/a1/x\n").as_deref(), Some("x"));
    assert_eq!(part.relative("0::/docker/a12\n"), None);
    assert_eq!(part.relative("0::/docker\n"), None);
}

#[test]
fn a_group_is_named_as_the_kernel_names_it() {
    let dir = Path::new("/sys/fs/cgroup/toolcell/i/cell-1");
    assert_eq!(mounted(MOUNTINFO).shown(dir), "/toolcell/i/cell-1");
    assert_eq!(mounted(BIND).shown(dir), "/docker/a1/toolcell/i/cell-1");
    assert_eq!(mounted(MOUNTINFO).below(""), Path::new("/sys/fs/cgroup"));
}

#[test]
fn the_operator_s_word_goes_before_our_own_group_and_that_before_the_top() {
    let service = own_group("system.slice/toolcell.service");
    assert_eq!(choose(Some("labs"), Some(&service)), "labs");
    assert_eq!(choose(None, Some(&service)), "system.slice/toolcell.service");
    assert_eq!(choose(None, Some(&own_group(""))), "", "a container's own top");
    assert_eq!(choose(None, None), "toolcell");
}

#[test]
fn our_own_group_is_no_parent_where_it_cannot_be_one() {
    let session = Own { has_strangers: true, ..own_group("user.slice/session-1.scope") };
    let without = Own { lacks: vec!["cpu"], ..own_group("system.slice/t.service") };
    let root = Own { is_root: true, ..own_group("") };
    for own in [session, without, root] {
        assert_eq!(choose(None, Some(&own)), "toolcell", "{own:?}");
    }
}

#[test]
fn we_are_no_stranger_to_ourselves_and_process_1_is() {
    assert!(runs_this_program(i32::try_from(std::process::id()).unwrap()));
    assert!(runs_this_program(i32::MAX), "who is gone is in nobody's way");
    assert!(!runs_this_program(1));
    assert!(!runs_this_program(0), "of another pid namespace");
}

/// A group's files, as plain files.
fn make_group(dir: &Path, subtree: &str) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("cgroup.subtree_control"), subtree).unwrap();
    fs::write(dir.join("cgroup.procs"), "").unwrap();
}

#[test]
fn only_what_is_not_handed_down_yet_is_enabled() {
    let top = tempfile::tempdir().unwrap();
    make_group(top.path(), "cpuset cpu memory pids\n");
    make_group(&top.path().join("labs"), "memory\n");
    make_group(&top.path().join("labs/i"), "");
    hand_down_to(top.path(), &top.path().join("labs/i")).unwrap();
    let control = |dir: &str| fs::read_to_string(top.path().join(dir).join("cgroup.subtree_control")).unwrap();
    assert_eq!(control(""), "cpuset cpu memory pids\n", "not written");
    assert!(control("labs").starts_with("+cpu +pids"), "{}", control("labs"));
    assert_eq!(control("labs/i"), "+memory +cpu +pids");
}

#[test]
fn each_answer_of_the_kernel_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("cgroup.procs"), format!("{}\n", std::process::id())).unwrap();
    let said = |errno| why(&io::Error::from_raw_os_error(errno), dir.path());
    assert!(said(nix::libc::EBUSY).contains(&std::process::id().to_string()), "{}", said(nix::libc::EBUSY));
    assert!(said(nix::libc::ENOENT).contains("hand them down"));
    assert!(said(nix::libc::EACCES).contains("delegated"));
    assert!(said(nix::libc::EROFS).contains("read-only"));
}

#[test]
fn what_an_instance_left_is_found_by_its_whole_name_wherever_it_is() {
    let top = tempfile::tempdir().unwrap();
    for dir in ["a1b2c3d4/cell-1", "user.slice/x/a1b2c3d4", "toolcell/a1b2c3d40", "toolcell/0a1b2c3d4"] {
        fs::create_dir_all(top.path().join(dir)).unwrap();
    }
    let mut found = named(top.path(), "a1b2c3d4", DEPTH_MAX).unwrap();
    found.sort();
    assert_eq!(found, [top.path().join("a1b2c3d4"), top.path().join("user.slice/x/a1b2c3d4")]);
    assert_eq!(named(top.path(), "a1b2c3d4", 0).unwrap(), [top.path().join("a1b2c3d4")], "bounded");
}
