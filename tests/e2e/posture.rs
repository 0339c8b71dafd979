//! A live cell, and our own processes, looked at from outside: the kernel says the same as the report.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use toolcell_tests::{Instance, Need, Process, Request, Running, cgroup_roots, command, descriptors_of, needs, run};
use toolcell_types::{Answer, ControlId, Verdict};

const MIB: u64 = 1 << 20;

/// The running call that everything is read from, with limits unlike the defaults.
struct Look {
    instance: Instance,
    tool: Process,
    init: Process,
    answer: Answer,
    seen: Vec<(ControlId, Result<Value, String>)>,
}

impl Look {
    fn take() -> Self {
        let instance = Instance::start();
        let limits = json!({
            "wall_ms": 31_000, "cpu_ms": 21_000, "memory_bytes": 96 * MIB, "pids": 33, "cpu_millis": 1500,
            "tmp_bytes": 8 * MIB, "tmp_inodes": 555, "file_bytes": 5 * MIB, "open_files": 77,
        });
        let running = Running::until_up(&instance, &Request::program("waits", &[]).limits(limits));
        let tool = running.process("waits");
        let init = Process::read(tool.parent).expect("the tool's parent is the cell's init");
        let seen = ControlId::ALL.into_iter().map(|id| (id, outside(id, &instance, &tool, &init))).collect();
        assert_eq!(running.cancel().status() / 100, 2);
        let answer = running.answer();
        Self { instance, tool, init, answer, seen }
    }
}

fn sure(holds: bool, what: impl std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what:?}")) }
}

/// What the kernel tells somebody outside about one control of that cell. Ok carries what was seen; an empty object
/// where the kernel has no word about it.
fn outside(id: ControlId, instance: &Instance, tool: &Process, init: &Process) -> Result<Value, String> {
    match id.as_str() {
        "namespace.user" => own_namespace(tool, init, "user").and_then(|()| id_maps(instance, tool)),
        "namespace.mount" => own_namespace(tool, init, "mnt").and_then(|()| rooted(tool)),
        "namespace.pid" => own_namespace(tool, init, "pid").and_then(|()| nested_ids(tool, init)),
        "namespace.net" => own_namespace(tool, init, "net").and_then(|()| no_interface(tool)),
        "namespace.ipc" => own_namespace(tool, init, "ipc").map(|()| json!({})),
        "namespace.uts" => own_namespace(tool, init, "uts").map(|()| json!({})),
        "namespace.cgroup" => own_namespace(tool, init, "cgroup").map(|()| json!({})),
        "root.readonly" => read_only(tool),
        "mounts.nosuid-nodev" => no_set_id(tool),
        "dev.minimal" => devices(tool),
        "proc.masked" => masked(tool),
        "capabilities" => no_capabilities(tool),
        "no-new-privs" => status_is(tool, "NoNewPrivs", "1"),
        "seccomp" => filters(tool),
        "identity.unprivileged" => unprivileged(instance, tool, init),
        "userns.nested" => no_nested(tool),
        "fds.closed" => three_descriptors(tool),
        "environment.allowlist" => environment(tool),
        "cgroup.memory" => memory(tool),
        "cgroup.cpu" => processor(tool),
        "cgroup.pids" => group_number(tool, "pids", "pids.max", 33),
        "rlimits" => resource_limits(tool),
        "tmp.quota" => scratch(tool),
        "wall-clock" | "cpu-clock" => timers(instance),
        // Of Landlock no /proc file tells, and of our own caps the kernel knows nothing: inside they are tried.
        _ => Ok(json!({})),
    }
}

fn own_namespace(tool: &Process, init: &Process, kind: &str) -> Result<(), String> {
    let host = Process::read(std::process::id()).ok_or("we are gone")?.namespace(kind);
    let (of_tool, of_init) = (tool.namespace(kind), init.namespace(kind));
    sure(of_tool != host && of_tool == of_init, (kind, host, of_tool, of_init))
}

fn id_maps(instance: &Instance, tool: &Process) -> Result<Value, String> {
    for map in ["uid_map", "gid_map"] {
        let lines: Vec<Vec<u32>> = tool
            .file(map)
            .lines()
            .map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
            .collect();
        let [init, own] = lines.as_slice() else { return Err(format!("two lines: {lines:?}")) };
        let first = instance.uid_base() + 16;
        let good = *init == [65_533, init[1], 1] && *own == [65_534, init[1] + 1, 1] && init[1] >= first;
        sure(good, lines.clone())?;
    }
    sure(tool.file("setgroups").trim() == "allow" || tool.file("setgroups").trim() == "deny", tool.file("setgroups"))?;
    Ok(json!({}))
}

fn rooted(tool: &Process) -> Result<Value, String> {
    let mut top: BTreeSet<String> = names(&tool.root("/"));
    for expected in ["bin", "dev", "etc", "proc", "tmp", "usr", "programs"] {
        sure(top.remove(expected), (expected, &top))?;
    }
    let more: BTreeSet<String> = ["sbin", "lib", "lib32", "lib64", "libx32"].iter().map(|s| (*s).to_owned()).collect();
    sure(top.is_subset(&more), &top)?;
    Ok(json!({}))
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn nested_ids(tool: &Process, init: &Process) -> Result<Value, String> {
    let (own, of_init) = (tool.status("NSpid"), init.status("NSpid"));
    sure(own.split_whitespace().count() == 2 && of_init.split_whitespace().last() == Some("1"), (own, of_init))?;
    Ok(json!({}))
}

fn no_interface(tool: &Process) -> Result<Value, String> {
    let devices = tool.file("net/dev");
    let names: Vec<&str> = devices.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
    sure(names == ["lo"], &names)?;
    sure(tool.file("net/route").lines().count() == 1, tool.file("net/route"))?;
    Ok(json!({}))
}

/// A line of mountinfo: where, its own options, type, options of the file system.
fn mounts(tool: &Process) -> Vec<(String, Vec<String>, String, String)> {
    let split = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let options = left.get(5)?.split(',').map(str::to_owned).collect();
        Some(((*left.get(4)?).to_owned(), options, (*right.first()?).to_owned(), (*right.get(2)?).to_owned()))
    };
    tool.file("mountinfo").lines().filter_map(split).collect()
}

fn read_only(tool: &Process) -> Result<Value, String> {
    let writable: Vec<String> = mounts(tool)
        .into_iter()
        .filter(|(_, options, _, _)| !options.iter().any(|option| option == "ro"))
        .map(|(at, _, _, _)| at)
        .collect();
    let scratch = |at: &String| ["/tmp", "/dev/shm", "/proc"].contains(&at.as_str()) || is_device(at);
    sure(writable.iter().all(scratch) && writable.iter().any(|at| at == "/tmp"), writable)?;
    Ok(json!({}))
}

fn is_device(at: &str) -> bool {
    ["null", "zero", "full", "random", "urandom"].iter().any(|name| at == format!("/dev/{name}"))
}

fn no_set_id(tool: &Process) -> Result<Value, String> {
    for (at, options, _, _) in mounts(tool) {
        let has = |name: &str| options.iter().any(|option| option == name);
        sure(has("nosuid"), (&at, &options))?;
        sure(has("nodev") != is_device(&at), (&at, &options))?;
    }
    Ok(json!({}))
}

fn devices(tool: &Process) -> Result<Value, String> {
    let found = names(&tool.root("/dev"));
    let expected = ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"];
    sure(found.iter().map(String::as_str).eq(expected), &found)?;
    Ok(json!({}))
}

fn masked(tool: &Process) -> Result<Value, String> {
    use std::os::unix::fs::MetadataExt as _;
    let all = mounts(tool);
    let over = |path: &str| all.iter().find(|(at, _, _, _)| at == path);
    for path in [
        "/proc/kcore",
        "/proc/keys",
        "/proc/timer_list",
        "/proc/sched_debug",
        "/proc/latency_stats",
        "/proc/acpi",
        "/proc/scsi",
        "/proc/sysrq-trigger",
        "/proc/sys",
        "/proc/bus",
        "/proc/fs",
        "/proc/irq",
    ] {
        let host = Path::new(path);
        if !host.exists() {
            continue;
        }
        let covered = over(path).is_some_and(|(_, options, _, _)| options.iter().any(|option| option == "ro"));
        let hidden = tool.root(path).metadata().is_ok_and(|meta| meta.mode() & 0o222 == 0 || meta.rdev() == 0x103);
        sure(covered || (hidden && over(path).is_some()), (path, over(path)))?;
    }
    Ok(json!({}))
}

fn no_capabilities(tool: &Process) -> Result<Value, String> {
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        sure(tool.status(set) == "0000000000000000", (set, tool.status(set)))?;
    }
    Ok(json!({}))
}

fn status_is(tool: &Process, field: &str, value: &str) -> Result<Value, String> {
    sure(tool.status(field) == value, (field, tool.status(field)))?;
    Ok(json!({}))
}

fn filters(tool: &Process) -> Result<Value, String> {
    sure(tool.status("Seccomp") == "2", tool.status("Seccomp"))?;
    let count: u64 =
        tool.status("Seccomp_filters").parse().map_err(|_none| "Seccomp_filters is no number".to_owned())?;
    sure(count >= 2, count)?;
    Ok(json!({ "filters": count }))
}

fn unprivileged(instance: &Instance, tool: &Process, init: &Process) -> Result<Value, String> {
    for field in ["Uid", "Gid"] {
        let ids: Vec<u32> = tool.status(field).split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let same = ids.len() == 4 && ids.iter().all(|id| *id == ids[0]);
        sure(same && ids[0] >= instance.uid_base() + 17 && ids[0] != init.uid, (field, ids))?;
    }
    sure(tool.status("Groups").is_empty(), tool.status("Groups"))?;
    Ok(json!({}))
}

/// The limit belongs to the user namespace, so somebody has to stand in it to read it.
fn no_nested(tool: &Process) -> Result<Value, String> {
    let pid = tool.pid.to_string();
    let read = run(command("nsenter")
        .args(["-t", &pid, "-U", "--preserve-credentials", "cat"])
        .arg("/proc/sys/user/max_user_namespaces"));
    sure(read.code == 0 && read.text().trim() == "0", (read.code, read.text(), read.stderr))?;
    Ok(json!({}))
}

fn three_descriptors(tool: &Process) -> Result<Value, String> {
    let held = descriptors_of(tool.pid);
    let numbers: Vec<u32> = held.keys().copied().collect();
    sure(numbers == [0, 1, 2], &held)?;
    sure(held[&0] == "/dev/null" && held[&1].starts_with("pipe:") && held[&2].starts_with("pipe:"), &held)?;
    sure(held[&1] != held[&2], &held)?;
    Ok(json!({}))
}

fn environment(tool: &Process) -> Result<Value, String> {
    let text = tool.file("environ");
    let mut variables: Vec<&str> = text.split_terminator('\0').collect();
    variables.sort_unstable();
    sure(variables == ["HOME=/tmp", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"], &variables)?;
    Ok(json!({}))
}

/// The directory of the tool's group in the hierarchy of a controller.
fn group(tool: &Process, controller: &str) -> Result<std::path::PathBuf, String> {
    let root = cgroup_roots().into_iter().find(|root| root.has(controller)).ok_or(controller)?;
    let text = tool.file("cgroup");
    let line = text
        .lines()
        .find(|line| line.split(':').nth(1).is_some_and(|names| names.split(',').any(|name| name == controller)));
    let path = line.and_then(|line| line.splitn(3, ':').nth(2)).ok_or(controller)?;
    Ok(root.path.join(path.trim_start_matches('/')))
}

fn number(dir: &Path, file: &str) -> Result<i64, String> {
    let path = dir.join(file);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.trim().parse().map_err(|error| format!("{}: {error}", path.display()))
}

fn group_number(tool: &Process, controller: &str, file: &str, expected: i64) -> Result<Value, String> {
    let seen = number(&group(tool, controller)?, file)?;
    sure(seen == expected, (file, seen))?;
    Ok(json!({}))
}

fn memory(tool: &Process) -> Result<Value, String> {
    let expected = i64::try_from(96 * MIB).unwrap();
    group_number(tool, "memory", "memory.limit_in_bytes", expected)?;
    let dir = group(tool, "memory")?;
    if dir.join("memory.memsw.limit_in_bytes").exists() {
        group_number(tool, "memory", "memory.memsw.limit_in_bytes", expected)?;
    }
    Ok(json!({}))
}

fn processor(tool: &Process) -> Result<Value, String> {
    let dir = group(tool, "cpu")?;
    let (quota, period) = (number(&dir, "cpu.cfs_quota_us")?, number(&dir, "cpu.cfs_period_us")?);
    sure(quota * 1000 == period * 1500, (quota, period))?;
    Ok(json!({}))
}

fn resource_limits(tool: &Process) -> Result<Value, String> {
    let text = tool.file("limits");
    let limit = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        let fields: Vec<&str> = line[name.len()..].split_whitespace().take(2).collect();
        fields.join(" ")
    };
    let size = (5 * MIB).to_string();
    sure(limit("Max file size") == format!("{size} {size}"), limit("Max file size"))?;
    sure(limit("Max open files") == "77 77", limit("Max open files"))?;
    sure(limit("Max core file size") == "0 0", limit("Max core file size"))?;
    Ok(json!({}))
}

fn scratch(tool: &Process) -> Result<Value, String> {
    let all = mounts(tool);
    let tmp = all.iter().find(|(at, _, _, _)| at == "/tmp").ok_or("no /tmp")?;
    let has = |option: &str| tmp.3.split(',').any(|seen| seen == option);
    sure(tmp.2 == "tmpfs" && has("size=8192k") && has("nr_inodes=555"), tmp)?;
    Ok(json!({}))
}

/// Armed timers of the launcher, which owns both clocks.
fn timers(instance: &Instance) -> Result<Value, String> {
    let launcher = instance.launcher();
    let armed = descriptors_of(launcher.pid)
        .into_iter()
        .filter(|(_, link)| link.contains("timerfd"))
        .filter(|(number, _)| !launcher.file(&format!("fdinfo/{number}")).contains("it_value: (0, 0)"))
        .count();
    sure(armed >= 1, armed)?;
    Ok(json!({}))
}

#[test]
fn live_cell_posture_seen_from_outside_equals_the_report() {
    needs!(Need::RootOnCgroupV1, Need::Tool("nsenter"));
    let look = Look::take();
    assert_eq!(look.answer.verdict, Verdict::Cancelled);
    let mut wrong = Vec::new();
    for (id, seen) in &look.seen {
        let item = look.answer.controls.iter().find(|item| item["id"] == id.as_str());
        let reported = item.map(|item| item["state"] == "enforced");
        match seen {
            Ok(_) if reported == Some(true) => {}
            Ok(_) => wrong.push(format!("{id}: holds, and the report says {item:?}")),
            Err(what) => wrong.push(format!("{id}: reported as {item:?}, seen from outside: {what}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\ntool {:?}\ninit {:?}", look.tool, look.init);
    drop(look.instance);
}

#[test]
fn the_cell_s_init_holds_nothing_and_cannot_be_looked_into() {
    needs!(Need::RootOnCgroupV1);
    let instance = Instance::start();
    let running = Running::until_up(&instance, &Request::program("waits", &[]));
    let tool = running.process("waits");
    let init = Process::read(tool.parent).unwrap();
    assert_ne!(init.uid, tool.uid, "another id than the tool's");
    assert_eq!(init.status("NoNewPrivs"), "1");
    assert_eq!(init.status("Seccomp"), "2");
    assert_eq!(init.status("CapEff"), "0000000000000000");
    assert!(!is_dumpable(&init), "not dumpable");
    for (number, link) in descriptors_of(init.pid) {
        let harmless = ["pipe:", "socket:", "anon_inode:", "/dev/null"].iter().any(|kind| link.starts_with(kind));
        assert!(harmless, "{number}: {link}");
    }
    assert_eq!(running.cancel().status() / 100, 2);
    assert_eq!(running.answer().verdict, Verdict::Cancelled);
}

/// The files of a process that is not dumpable belong to root (proc(5)).
fn is_dumpable(process: &Process) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(format!("/proc/{}/environ", process.pid)).expect("it is there");
    meta.uid() == process.uid
}

#[test]
fn the_daemon_and_the_signer_have_no_privilege_and_no_way_to_gain_one() {
    needs!(Need::RootOnCgroupV1);
    let instance = Instance::start();
    let base = instance.uid_base();
    for (process, uid) in [(instance.daemon(), base), (instance.signer(), base + 1)] {
        let what = process.line.clone();
        for field in ["Uid", "Gid"] {
            let ids: Vec<String> = process.status(field).split_whitespace().map(str::to_owned).collect();
            assert_eq!(ids, vec![uid.to_string(); 4], "{field} of {what}");
        }
        assert_eq!(process.status("Groups"), "", "{what}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(process.status(set), "0000000000000000", "{set} of {what}");
        }
        assert_eq!(process.status("NoNewPrivs"), "1", "{what}");
        assert!(!is_dumpable(&process), "{what}");
        assert!(
            process
                .file("limits")
                .lines()
                .any(|line| { line.starts_with("Max core file size") && line.split_whitespace().nth(4) == Some("0") })
        );
        let own = Process::read(std::process::id()).unwrap();
        assert_ne!(process.namespace("mnt"), own.namespace("mnt"), "{what}");
    }
}

#[test]
fn the_signer_alone_holds_the_key_and_the_launcher_opens_nothing_of_the_ledger() {
    needs!(Need::RootOnCgroupV1);
    let instance = Instance::start();
    drop(instance.call(&Request::exec(&["true"])));
    let holds = |process: &Process, what: &str| descriptors_of(process.pid).values().any(|link| link.contains(what));
    assert!(holds(&instance.daemon(), "ledger.db"), "the control");
    assert!(!holds(&instance.launcher(), "ledger.db") && !holds(&instance.signer(), "ledger.db"));
    assert!(!holds(&instance.daemon(), "signer") && !holds(&instance.launcher(), "signer"));
    let key = std::fs::read_dir(instance.home().state().join("signer")).unwrap();
    for entry in key {
        let path = entry.unwrap().path();
        let seen = instance.daemon().root(&path.to_string_lossy());
        assert!(!seen.exists(), "the daemon's mounts do not show {}", path.display());
    }
}
