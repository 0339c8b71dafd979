//! What must not work in a cell, each act beside a control: the same program run on the host as root, or the allowed
//! neighbour of the act inside.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;

use serde_json::json;
use toolcell_tests::{Instance, Need, Request, command, needs, program_inside, program_on_host, run};
use toolcell_types::{Answer, Verdict};

const EPERM: &str = "1";
const ENOENT: &str = "2";
const ESRCH: &str = "3";
const EACCES: &str = "13";
const EINVAL: &str = "22";
const EROFS: &str = "30";
const ENOSYS: &str = "38";
const ECONNREFUSED: &str = "111";
const SIGSYS: &str = "signal 31";

/// What an act does inside, and what shows that it is the cell that makes the difference.
enum Rule {
    /// Works inside and outside.
    Allowed,
    /// Fails inside with one of these; outside it works, or gets past the permission check to its bogus arguments.
    Denied(&'static [&'static str]),
    /// As `Denied`, but this may be a kernel without that feature, where it fails outside as well.
    DeniedWhereThereIs(&'static [&'static str]),
}

use Rule::{Allowed, Denied, DeniedWhereThereIs};

/// Every act of `probe.c`.
const ACTS: &[(&str, Rule)] = &[
    ("write_usr", Denied(&[EROFS, EACCES])),
    ("write_etc", Denied(&[EROFS, EACCES])),
    ("write_dir", Allowed),
    ("read_own_environ", Allowed),
    ("read_init_environ", Denied(&[EACCES, ENOENT])),
    ("read_init_memory", Denied(&[EACCES, ENOENT])),
    ("read_init_program", Denied(&[EACCES, ENOENT])),
    ("list_init_descriptors", Denied(&[EACCES, ENOENT])),
    ("enter_init_root", Denied(&[EACCES, ENOENT])),
    ("write_core_pattern", Denied(&[EROFS, EACCES])),
    ("write_hostname_file", Denied(&[EROFS, EACCES])),
    ("write_sysrq", DeniedWhereThereIs(&[EROFS, EACCES, ENOENT])),
    ("write_own_uid_map", Denied(&[EROFS, EACCES])),
    ("list_sys", Denied(&[ENOENT, EACCES])),
    ("list_cgroups", Denied(&[ENOENT, EACCES])),
    ("read_kmsg", Denied(&[ENOENT, EACCES])),
    ("read_host_file", Denied(&[ENOENT, EACCES])),
    ("read_by_handle", Denied(&[EPERM, ENOSYS])),
    ("make_device", Denied(&[EPERM, EACCES])),
    ("new_mounts", Denied(&[EPERM])),
    ("mount_tmpfs", Denied(&[EPERM])),
    ("remount_root", Denied(&[EPERM])),
    ("unmount_proc", Denied(&[EPERM])),
    ("change_root", Denied(&[EPERM])),
    ("pivot", Denied(&[EPERM])),
    ("open_file_system", Denied(&[EPERM, ENOSYS])),
    ("clone_tree", Denied(&[EPERM, ENOSYS])),
    ("move_a_mount", Denied(&[EPERM, ENOSYS])),
    ("set_mount_attributes", Denied(&[EPERM, ENOSYS])),
    ("new_user", Denied(&[EPERM])),
    ("new_network", Denied(&[EPERM])),
    ("clone_new_user", Denied(&[EPERM])),
    ("clone_three", Denied(&[ENOSYS])),
    ("plain_fork", Allowed),
    ("join_namespace", Denied(&[EPERM])),
    ("socket_unix", Allowed),
    ("socket_inet", Denied(&[EPERM, "97"])),
    ("socket_inet6", DeniedWhereThereIs(&[EPERM, "97"])),
    ("socket_inet_datagram", Denied(&[EPERM, "97"])),
    ("socket_inet_high_bits", Denied(&[EPERM, "97"])),
    ("socket_netlink", Denied(&[EPERM, "97"])),
    ("socket_packet", Denied(&[EPERM, "97"])),
    ("connect_abstract", Denied(&[ECONNREFUSED, EPERM])),
    ("connect_path", Denied(&[ENOENT, EACCES])),
    ("connect_to_self", Allowed),
    ("connect_mounted", Denied(&[ENOENT, EACCES])),
    ("send_to_mounted", Denied(&[ENOENT, EACCES])),
    ("pair_of_sockets", Allowed),
    ("attach_filter", Denied(&[EPERM])),
    ("signal_host", Denied(&[ESRCH])),
    ("signal_init", Denied(&[EPERM])),
    ("trace_init", Denied(&[EPERM, ENOSYS])),
    ("trace_child", Denied(&[EPERM, ENOSYS])),
    ("read_child_memory", Denied(&[EPERM, ENOSYS])),
    ("take_descriptor", Denied(&[EPERM, ENOSYS])),
    ("signal_child", Allowed),
    ("ring", DeniedWhereThereIs(&[ENOSYS])),
    ("key_add", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("key_read", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("bpf", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("perf", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("fault_handler", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("load_module", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("load_kernel", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("reboot_machine", Denied(&[EPERM, ENOSYS])),
    ("swap_on", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("set_clock", Denied(&[EPERM, ENOSYS])),
    ("set_host_name", Denied(&[EPERM])),
    ("account", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("kernel_log", Denied(&[EPERM, ENOSYS])),
    ("watch_everything", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("ports", DeniedWhereThereIs(&[EPERM, ENOSYS])),
    ("install_filter", Denied(&[EPERM])),
    ("huge_pages", Denied(&[EPERM])),
    ("watch_files", Denied(&[EPERM])),
    ("take_lease", Denied(&[EPERM])),
    ("lock_file", Allowed),
    ("set_core_limit", Denied(&[EPERM])),
    ("lower_stack_limit", Allowed),
    ("other_personality", Denied(&[EPERM, ENOSYS])),
    ("become_root", Denied(&[EPERM, EINVAL])),
    ("become_root_group", Denied(&[EPERM, EINVAL])),
    ("add_groups", Denied(&[EPERM, EINVAL])),
    ("push_input", Denied(&[EPERM])),
    ("push_input_high_bits", Denied(&[EPERM])),
    ("ask_pipe", Allowed),
    ("old_abi", DeniedWhereThereIs(&[SIGSYS])),
    ("unknown_number", DeniedWhereThereIs(&[ENOSYS])),
];

fn results(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(name, result)| (name.to_owned(), result.to_owned())).collect()
}

fn stdout(answer: &Answer) -> String {
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{answer:?}");
    serde_json::to_value(&answer.stdout).unwrap().as_str().unwrap().to_owned()
}

/// Acts that another rule holds for in a cell with mounts: there no socket leads out, not even to a file in a mount.
const WITH_MOUNTS: &[(&str, Rule)] = &[
    ("connect_abstract", Denied(&[EPERM])),
    ("connect_path", Denied(&[EPERM])),
    ("connect_to_self", Denied(&[EPERM])),
    ("connect_mounted", Denied(&[EPERM])),
    ("send_to_mounted", Denied(&[EPERM])),
];

/// What listens on the host while a probe runs, and where a probe works.
struct Host {
    dir: tempfile::TempDir,
    name: String,
    _listeners: [UnixListener; 2],
}

impl Host {
    fn new() -> Self {
        use std::os::linux::net::SocketAddrExt as _;
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        let by_path = UnixListener::bind(dir.path().join("socket")).unwrap();
        std::fs::set_permissions(dir.path().join("socket"), std::fs::Permissions::from_mode(0o666)).unwrap();
        let name = format!("toolcell-escapes-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixListener::bind_addr(&address).unwrap();
        Self { dir, name, _listeners: [by_path, by_name] }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_string_lossy().into_owned()
    }

    fn directory(&self) -> String {
        self.dir.path().to_string_lossy().into_owned()
    }

    /// The probe's arguments: where it works, whom it takes for the init, and the socket that a mount shows.
    fn arguments(&self, work: &str, init: u32, mounted: &str) -> Vec<String> {
        let ours = std::process::id().to_string();
        let (socket, secret) = (self.path("socket"), self.path("secret"));
        vec![work.to_owned(), ours, self.name.clone(), socket, secret, init.to_string(), mounted.to_owned()]
    }

    fn outside(&self) -> BTreeMap<String, String> {
        let arguments = self.arguments(&self.directory(), std::process::id(), &self.path("socket"));
        results(&run(command(program_on_host("probe")).args(arguments)).expect_code(0).text())
    }
}

fn compare(rules: &[(&str, &Rule)], inside: &BTreeMap<String, String>, outside: &BTreeMap<String, String>) {
    let mut wrong = Vec::new();
    for (act, rule) in rules {
        let (inside, outside) = (inside.get(*act).map(String::as_str), outside.get(*act).map(String::as_str));
        let fine = match rule {
            Allowed => inside == Some("ok") && outside == Some("ok"),
            Denied(errors) => inside.is_some_and(|seen| errors.contains(&seen)) && gets_through(outside, inside),
            DeniedWhereThereIs(errors) => inside.is_some_and(|seen| errors.contains(&seen)) && outside.is_some(),
        };
        if !fine {
            wrong.push(format!("{act}: inside {inside:?}, outside {outside:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(inside.len(), rules.len(), "every act has a rule");
}

#[test]
fn every_denied_act_fails_inside_and_gets_through_outside() {
    needs!(Need::Root);
    every_denied_act_fails_in(&Instance::start());
}

/// Tries every act in a sealed cell of this instance, and on the host as root.
pub(crate) fn every_denied_act_fails_in(instance: &Instance) {
    let host = Host::new();
    let arguments = host.arguments("/tmp", 1, "/data/socket");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let inside = results(&stdout(&instance.call(&Request::carried("probe", &arguments))));
    let rules: Vec<(&str, &Rule)> = ACTS.iter().map(|(act, rule)| (*act, rule)).collect();
    compare(&rules, &inside, &host.outside());
}

#[test]
fn in_a_cell_with_mounts_no_socket_file_of_the_host_can_be_reached_either() {
    needs!(Need::Root);
    every_denied_act_fails_in_a_cell_with_mounts_of(&Instance::start());
}

/// The same in a cell that shows host paths.
pub(crate) fn every_denied_act_fails_in_a_cell_with_mounts_of(instance: &Instance) {
    let host = Host::new();
    let arguments = host.arguments("/tmp", 1, "/data/socket");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let request = Request::program("probe", &arguments).mount(&host.directory(), "/data");
    let inside = results(&stdout(&instance.call(&request)));
    let other = |act: &str| WITH_MOUNTS.iter().find(|(name, _)| *name == act).map(|(_, rule)| rule);
    let rules: Vec<(&str, &Rule)> = ACTS.iter().map(|(act, rule)| (*act, other(act).unwrap_or(rule))).collect();
    compare(&rules, &inside, &host.outside());
    let listed = Request::exec(&["ls", "/data"]).mount(&host.directory(), "/data");
    assert_eq!(stdout(&instance.call(&listed)), "secret\nsocket\n", "the control: the file itself is there");
}

/// Outside, the act works, or it fails for its arguments and not for want of permission.
fn gets_through(outside: Option<&str>, inside: Option<&str>) -> bool {
    outside != inside && outside.is_some_and(|seen| ![EPERM, EACCES, ENOSYS].contains(&seen))
}

#[test]
fn a_set_uid_program_gains_nothing() {
    needs!(Need::Root);
    let instance = Instance::start();
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = dir.path().join("who");
    std::fs::copy(program_on_host("who"), &path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let host = dir.path().to_string_lossy().into_owned();
    let inside = stdout(&instance.call(&Request::exec(&["/suid/who"]).mount(&host, "/suid")));
    assert_eq!(inside, "65534\n");
    let outside = run(command(&path).uid(1234).gid(1234)).expect_code(0);
    assert_eq!(outside.text(), "0\n", "the control: outside the bit counts");
}

#[test]
fn our_own_files_and_sockets_are_not_there() {
    needs!(Need::Root);
    let instance = Instance::start();
    let home = instance.home();
    let places = [
        home.state(),
        home.state().join("ledger.db"),
        home.state().join("signer"),
        instance.socket(),
        home.dir().to_path_buf(),
        "/run/toolcell".into(),
        "/var/lib/toolcell".into(),
        "/etc/toolcell".into(),
        "/etc/shadow".into(),
        "/root".into(),
        "/home".into(),
        "/var".into(),
        "/run".into(),
    ];
    for place in &places {
        let look = format!("[ -e {0} ] && echo there || echo none", place.display());
        assert_eq!(stdout(&instance.call(&Request::shell(&look))), "none\n", "{}", place.display());
    }
    let there = places[..4].iter().filter(|place| place.exists()).count();
    assert_eq!(there, 4, "the control: on the host they are");
    assert_eq!(stdout(&instance.call(&Request::shell("[ -e /etc/passwd ] && echo there"))), "there\n");
}

#[test]
fn no_process_outside_is_visible() {
    needs!(Need::Root);
    let instance = Instance::start();
    let other = toolcell_tests::Running::until_up(&instance, &Request::program("waits", &[]));
    let seen = stdout(&instance.call(&Request::shell("cd /proc; echo [0-9]*")));
    let ids: Vec<u32> = seen.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(ids.len() <= 2 && ids.iter().all(|id| *id <= 4), "the shell alone, and not even the init: {seen}");
    assert!(ids.contains(&2), "the control: its own is: {seen}");
    assert_eq!(other.cancel().status() / 100, 2);
    assert_eq!(other.answer().verdict, Verdict::Cancelled);
}

#[test]
fn nothing_survives_into_the_next_call() {
    needs!(Need::Root);
    let instance = Instance::start();
    let traces = stdout(&instance.call(&Request::carried("leaves_traces", &["write"])));
    let found: Vec<&str> = traces.lines().collect();
    for trace in ["tmp", "shm", "sysv", "abstract"] {
        assert!(found.contains(&trace), "the control: the call sees its own: {traces}");
    }
    assert_eq!(stdout(&instance.call(&Request::carried("leaves_traces", &["look"]))), "");
    let outside = run(command(program_on_host("leaves_traces")).arg("look")).expect_code(0);
    assert_eq!(outside.text(), "", "nor on the host");
}

#[test]
fn only_three_descriptors_come_in() {
    needs!(Need::Root);
    let instance = Instance::start();
    // `ls` opens the directory itself, as the next free number.
    let seen = stdout(&instance.call(&Request::exec(&["ls", "/proc/self/fd"])));
    assert_eq!(seen, "0\n1\n2\n3\n");
    let input = stdout(&instance.call(&Request::exec(&["readlink", "/proc/self/fd/0"])));
    assert_eq!(input, "/dev/null\n");
    let with = Request::exec(&["ls", "/proc/self/fd"]).with("stdin", json!("x"));
    assert_eq!(stdout(&instance.call(&with)), "0\n1\n2\n3\n");
}

#[test]
fn stray_descriptors_of_whoever_started_serve_do_not_come_in() {
    needs!(Need::Root);
    let dir = tempfile::tempdir().unwrap();
    let script = format!("exec 7</etc/shadow 8<{0} 9>{0}/left; exec \"$0\" \"$@\"", dir.path().display());
    let instance = toolcell_tests::Setup::default().wrapped(&["/bin/sh", "-c", &script]).start();
    let seen = stdout(&instance.call(&Request::exec(&["ls", "-l", "/proc/self/fd"])));
    assert!(!seen.contains("shadow") && !seen.contains("left"), "{seen}");
    assert_eq!(stdout(&instance.call(&Request::exec(&["ls", "/proc/self/fd"]))), "0\n1\n2\n3\n");
    for part in [instance.launcher(), instance.daemon(), instance.signer()] {
        let held = toolcell_tests::descriptors_of(part.pid);
        let stray = held.values().filter(|link| link.contains("shadow") || link.contains("left")).count();
        assert_eq!(stray, 0, "{}: {held:?}", part.name);
    }
}

#[test]
fn the_environment_is_made_from_nothing() {
    needs!(Need::Root);
    let instance = toolcell_tests::Setup::default().env("LD_PRELOAD", "").env("SECRET", "x").start();
    let lines = |request: &Request| {
        let mut lines: Vec<String> = stdout(&instance.call(request)).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let standard = ["HOME=/tmp", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"];
    assert_eq!(lines(&Request::exec(&["env"])), standard);
    let more = Request::exec(&["env"]).with("env", json!({ "A": "1 2", "LANG": "C" }));
    assert_eq!(lines(&more), ["A=1 2", "HOME=/tmp", "LANG=C", "PATH=/usr/local/bin:/usr/bin:/bin"]);
    assert_eq!(stdout(&instance.call(&Request::exec(&["pwd"]))), "/tmp\n");
}

#[test]
fn the_network_has_no_interface_up() {
    needs!(Need::Root);
    let instance = Instance::start();
    let routes = stdout(&instance.call(&Request::exec(&["cat", "/proc/net/route"])));
    assert!(routes.lines().count() <= 1, "no more than the head of the table: {routes}");
    let devices = stdout(&instance.call(&Request::exec(&["cat", "/proc/net/dev"])));
    let names: Vec<&str> = devices.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
    assert_eq!(names, ["lo"], "{devices}");
}

#[test]
fn two_cells_at_once_have_different_ids_and_cannot_see_each_other() {
    needs!(Need::Root);
    let instance = Instance::start();
    let running = |_n| toolcell_tests::Running::until_up(&instance, &Request::program("waits", &[]));
    let calls = [running(1), running(2)];
    let tools: Vec<_> = calls[0].processes().into_iter().filter(|process| process.name == "waits").collect();
    let [one, two] = tools.as_slice() else { panic!("two tools: {tools:?}") };
    let base = instance.uid_base();
    assert!(one.uid != two.uid && one.uid >= base + 16 && two.uid >= base + 16, "{tools:?}");
    for kind in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
        assert_ne!(one.namespace(kind), two.namespace(kind), "{kind}");
    }
    for call in &calls {
        assert_eq!(call.cancel().status() / 100, 2);
        assert_eq!(call.answer().verdict, Verdict::Cancelled);
    }
}

#[test]
fn a_relative_program_is_looked_up_inside_only() {
    needs!(Need::Root);
    let instance = Instance::start();
    let inside = program_inside("who");
    let found = Request::program("who", &[]);
    assert_eq!(stdout(&instance.call(&found)), "65534\n", "{inside}");
    let none = instance.call(&Request::exec(&["who-is-not-there"]));
    assert_eq!(none.verdict.cause(), "start_failed");
}
