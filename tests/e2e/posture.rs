//! A live cell, and our own processes, looked at from outside: the kernel says the same as the report.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use toolcell_tests::{
    CgroupRoot, Instance, Need, Process, Request, Running, cgroup_roots, command, descriptors_of, kernel_version,
    needs, run, status_field,
};
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
        let running = Running::until_up(&instance, &Request::program("waits", &[]).limits(limits()));
        let tool = running.process("waits");
        let init = Process::read(tool.parent).expect("the tool's parent is the cell's init");
        let seen = ControlId::ALL.into_iter().map(|id| (id, outside(id, &instance, &tool, &init))).collect();
        assert_eq!(running.cancel().status() / 100, 2);
        let answer = running.answer();
        Self { instance, tool, init, answer, seen }
    }
}

/// Limits unlike the defaults.
pub(crate) fn limits() -> Value {
    json!({
        "wall_ms": 31_000, "cpu_ms": 21_000, "memory_bytes": 96 * MIB, "pids": 33, "cpu_millis": 1500,
        "tmp_bytes": 8 * MIB, "tmp_inodes": 555, "file_bytes": 5 * MIB, "open_files": 77,
    })
}

fn sure(holds: bool, what: impl std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what:?}")) }
}

/// What the kernel tells somebody outside about one control of that cell. Ok carries what was seen; an empty object
/// where the kernel has no word about it.
pub(crate) fn outside(id: ControlId, instance: &Instance, tool: &Process, init: &Process) -> Result<Value, String> {
    match id.as_str() {
        "namespace.user" => both(own_namespace(tool, init, "user"), id_maps(instance, tool)),
        "namespace.mount" => both(own_namespace(tool, init, "mnt"), rooted(tool)),
        "namespace.pid" => both(own_namespace(tool, init, "pid"), nested_ids(tool, init)),
        "namespace.net" => both(own_namespace(tool, init, "net"), no_interface(tool)),
        "namespace.ipc" => own_namespace(tool, init, "ipc"),
        "namespace.uts" => own_namespace(tool, init, "uts"),
        "namespace.cgroup" => own_namespace(tool, init, "cgroup"),
        "root.readonly" => read_only(tool),
        "mounts.nosuid-nodev" => no_set_id(tool),
        "dev.minimal" => devices(tool),
        "proc.masked" => masked(tool),
        "capabilities" => no_capabilities(tool),
        "no-new-privs" => no_new_privileges(tool),
        "seccomp" => filters(tool),
        "identity.unprivileged" => unprivileged(instance, tool, init),
        "userns.nested" => no_nested(tool),
        "fds.closed" => three_descriptors(tool),
        "environment.allowlist" => environment(tool),
        "cgroup.memory" => memory(tool),
        "cgroup.cpu" => processor(tool),
        "cgroup.pids" => group_files(tool, "pids", &[("pids.max", json!(33))]),
        "rlimits" => resource_limits(tool),
        "tmp.quota" => scratch(tool),
        "wall-clock" | "cpu-clock" => timers(instance),
        // Of Landlock no /proc file tells, and of our own caps the kernel knows nothing: inside they are tried.
        _ => Ok(json!({})),
    }
}

fn own_namespace(tool: &Process, init: &Process, kind: &str) -> Result<Value, String> {
    let host = Process::read(std::process::id()).ok_or("we are gone")?.namespace(kind);
    let (of_tool, of_init) = (tool.namespace(kind), init.namespace(kind));
    sure(of_tool != host && of_tool == of_init, (kind, host, &of_tool, of_init))?;
    Ok(json!({ "own": true, "link": of_tool }))
}

fn id_maps(instance: &Instance, tool: &Process) -> Result<Value, String> {
    let mut ids = Vec::new();
    for map in ["uid_map", "gid_map"] {
        let text = tool.file(map);
        let lines: Vec<Vec<u32>> =
            text.lines().map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect()).collect();
        let [init, own] = lines.as_slice() else { return Err(format!("two lines: {lines:?}")) };
        let first = instance.uid_base() + 16;
        let good = *init == [65_533, init[1], 1] && *own == [65_534, init[1] + 1, 1] && init[1] >= first;
        sure(good, &lines)?;
        ids.extend(text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    Ok(json!({ "ids": ids }))
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

pub(crate) fn names(dir: &Path) -> BTreeSet<String> {
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
    sure(tool.file("net/route").lines().count() <= 1, tool.file("net/route"))?;
    Ok(json!({ "interfaces": names }))
}

/// A line of mountinfo.
struct Mount {
    at: String,
    options: Vec<String>,
    kind: String,
    of_file_system: Vec<String>,
}

impl Mount {
    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|seen| seen == option)
    }
}

fn mounts(tool: &Process) -> Vec<Mount> {
    let split = |text: &str| text.split(',').map(str::to_owned).collect();
    let read = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let (at, options) = ((*left.get(4)?).to_owned(), split(left.get(5)?));
        Some(Mount { at, options, kind: (*right.first()?).to_owned(), of_file_system: split(right.get(2)?) })
    };
    tool.file("mountinfo").lines().filter_map(read).collect()
}

pub(crate) fn without(tool: &Process, option: &str) -> Vec<String> {
    mounts(tool).into_iter().filter(|mount| !mount.has(option)).map(|mount| mount.at).collect()
}

fn read_only(tool: &Process) -> Result<Value, String> {
    let writable = without(tool, "ro");
    sure(writable == ["/tmp", "/dev/shm"], &writable)?;
    Ok(json!({ "writable": writable, "mounts": mounts(tool).len() }))
}

fn no_set_id(tool: &Process) -> Result<Value, String> {
    let (suid, devices) = (without(tool, "nosuid"), without(tool, "nodev"));
    sure(suid.is_empty() && devices == ["/dev"], (&suid, &devices))?;
    Ok(json!({ "suid_on": suid, "devices_on": devices }))
}

fn devices(tool: &Process) -> Result<Value, String> {
    use std::os::unix::fs::MetadataExt as _;
    let found = names(&tool.root("/dev"));
    let expected = ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"];
    sure(found.iter().map(String::as_str).eq(expected), &found)?;
    for name in ["full", "null", "random", "urandom", "zero"] {
        let rdev = |path: &Path| path.symlink_metadata().map(|meta| meta.rdev()).ok();
        let (inside, host) = (rdev(&tool.root(&format!("/dev/{name}"))), rdev(&Path::new("/dev").join(name)));
        sure(inside == host, (name, inside, host))?;
    }
    Ok(json!({ "entries": found }))
}

fn masked(tool: &Process) -> Result<Value, String> {
    let all = mounts(tool);
    let proc = all.iter().find(|mount| mount.at == "/proc").ok_or("no /proc")?;
    sure(proc.kind == "proc" && proc.has("ro") && proc.has("noexec"), &proc.options)?;
    let mut over: Vec<&str> = all.iter().filter_map(|mount| mount.at.strip_prefix("/proc/")).collect();
    over.sort_unstable();
    // The masked list of the OCI runtime's default, as far as this kernel has the files.
    for name in ["acpi", "asound", "kcore", "keys", "latency_stats", "timer_list", "timer_stats", "sched_debug", "scsi"]
    {
        sure(over.contains(&name) || !Path::new("/proc").join(name).exists(), (name, &over))?;
    }
    Ok(json!({ "masked": over, "whole_read_only": true }))
}

fn no_capabilities(tool: &Process) -> Result<Value, String> {
    let mut sets = Vec::new();
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        sure(tool.status(set) == "0000000000000000", (set, tool.status(set)))?;
        sets.push(format!("{set} {}", tool.status(set)));
    }
    Ok(json!({ "sets": sets }))
}

fn filters(tool: &Process) -> Result<Value, String> {
    let count = |process: &Process| process.status("Seccomp_filters").parse::<u64>().unwrap_or(0);
    let own = Process::read(std::process::id()).ok_or("we are gone")?;
    let filters = count(tool) - count(&own);
    sure(tool.status("Seccomp") == "2" && filters >= 2, (tool.status("Seccomp"), filters))?;
    Ok(json!({ "mode": 2, "filters": filters }))
}

fn no_new_privileges(tool: &Process) -> Result<Value, String> {
    sure(tool.status("NoNewPrivs") == "1", tool.status("NoNewPrivs"))?;
    Ok(json!({ "no_new_privs": 1 }))
}

fn unprivileged(instance: &Instance, tool: &Process, init: &Process) -> Result<Value, String> {
    let ids = |field: &str| -> Vec<u32> {
        tool.status(field).split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    for field in ["Uid", "Gid"] {
        let ids = ids(field);
        let same = ids.len() == 4 && ids.iter().all(|id| *id == ids[0]);
        sure(same && ids[0] >= instance.uid_base() + 17 && ids[0] != init.uid, (field, ids))?;
    }
    sure(tool.status("Groups").is_empty(), tool.status("Groups"))?;
    Ok(json!({ "uids": ids("Uid"), "gids": ids("Gid"), "groups": [] }))
}

/// The limit belongs to the user namespace, so somebody has to stand in it to read it.
fn no_nested(tool: &Process) -> Result<Value, String> {
    let mut nsenter = command("nsenter");
    nsenter.args(["-t", &tool.pid.to_string(), "-U", "--preserve-credentials", "cat"]);
    let read = run(nsenter.arg("/proc/sys/user/max_user_namespaces"));
    sure(read.code == 0 && read.text().trim() == "0", (read.code, read.text(), read.stderr))?;
    Ok(json!({ "max_user_namespaces": 0 }))
}

fn three_descriptors(tool: &Process) -> Result<Value, String> {
    let held = descriptors_of(tool.pid);
    let numbers: Vec<u32> = held.keys().copied().collect();
    sure(numbers == [0, 1, 2], &held)?;
    sure(held[&0] == "/dev/null" && held[&1].starts_with("pipe:") && held[&2].starts_with("pipe:"), &held)?;
    sure(held[&1] != held[&2], &held)?;
    Ok(json!({ "after_exec": numbers }))
}

fn environment(tool: &Process) -> Result<Value, String> {
    let text = tool.file("environ");
    let mut variables: Vec<&str> = text.split_terminator('\0').collect();
    variables.sort_unstable();
    sure(variables == ["HOME=/tmp", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"], &variables)?;
    Ok(json!({}))
}

/// The hierarchy of a controller, and the directory of the tool's group in it.
fn group(tool: &Process, controller: &str) -> Result<(CgroupRoot, std::path::PathBuf), String> {
    let root = cgroup_roots().into_iter().find(|root| root.has(controller)).ok_or(controller)?;
    let text = tool.file("cgroup");
    let has = |line: &&str| {
        let names = line.split(':').nth(1);
        names.is_some_and(|names| match root.is_unified() {
            true => names.is_empty(),
            false => names.split(',').any(|name| name == controller),
        })
    };
    let path = text.lines().find(has).and_then(|line| line.splitn(3, ':').nth(2)).ok_or(controller)?;
    sure(path.len() > 1, path)?;
    let dir = root.path.join(path.trim_start_matches('/'));
    Ok((root, dir))
}

/// Files of the tool's group and what they have to hold.
fn group_files(tool: &Process, controller: &str, files: &[(&str, Value)]) -> Result<Value, String> {
    let (root, dir) = group(tool, controller)?;
    let mut seen = json!({ "member": true, "version": if root.is_unified() { 2 } else { 1 } });
    for (file, expected) in files {
        let path = dir.join(file);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let value = text.trim().parse::<i64>().map_or_else(|_| json!(text.trim()), |number| json!(number));
        sure(value == *expected, (file, &text))?;
        seen[file] = expected.clone();
    }
    Ok(seen)
}

fn memory(tool: &Process) -> Result<Value, String> {
    let (root, dir) = group(tool, "memory")?;
    let bytes = json!(96 * MIB);
    let (first, swap) = match root.is_unified() {
        true => (vec![("memory.max", bytes), ("memory.oom.group", json!(0))], ("memory.swap.max", json!(0))),
        false => (vec![("memory.limit_in_bytes", bytes.clone())], ("memory.memsw.limit_in_bytes", bytes)),
    };
    let counted = dir.join(swap.0).exists().then_some(swap);
    group_files(tool, "memory", &first.into_iter().chain(counted).collect::<Vec<_>>())
}

/// 1500 thousandths of a processor, over a period of 100 ms.
fn processor(tool: &Process) -> Result<Value, String> {
    match group(tool, "cpu")?.0.is_unified() {
        true => group_files(tool, "cpu", &[("cpu.max", json!("150000 100000"))]),
        false => {
            group_files(tool, "cpu", &[("cpu.cfs_quota_us", json!(150_000)), ("cpu.cfs_period_us", json!(100_000))])
        }
    }
}

fn resource_limits(tool: &Process) -> Result<Value, String> {
    let text = tool.file("limits");
    let limit = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        let mut fields = line[name.len()..].split_whitespace();
        (fields.next().and_then(|soft| soft.parse::<u64>().ok()), fields.next().and_then(|hard| hard.parse().ok()))
    };
    for (name, value) in [("Max file size", 5 * MIB), ("Max open files", 77), ("Max core file size", 1)] {
        sure(limit(name) == (Some(value), Some(value)), (name, limit(name)))?;
    }
    Ok(json!({ "file_size": 5 * MIB, "open_files": 77, "core_file_size": 1 }))
}

fn scratch(tool: &Process) -> Result<Value, String> {
    for at in ["/tmp", "/dev/shm"] {
        let all = mounts(tool);
        let mount = all.iter().find(|mount| mount.at == at).ok_or(at)?;
        let has = |option: &str| mount.of_file_system.iter().any(|seen| seen == option);
        sure(mount.kind == "tmpfs" && has("size=8192k") && has("nr_inodes=555"), &mount.of_file_system)?;
    }
    Ok(json!({ "bytes": 8 * MIB, "inodes": 555, "file_systems": 1 }))
}

/// Armed timers of the launcher, which owns both clocks.
fn timers(instance: &Instance) -> Result<Value, String> {
    let launcher = instance.launcher();
    let armed = descriptors_of(launcher.pid)
        .into_iter()
        .filter(|(_, link)| link.contains("timerfd"))
        .filter(|(number, _)| !launcher.file(&format!("fdinfo/{number}")).contains("it_value: (0, 0)"))
        .count();
    sure(armed >= 2, armed)?;
    Ok(json!({}))
}

/// Both of these hold.
fn both(one: Result<Value, String>, other: Result<Value, String>) -> Result<Value, String> {
    let (mut one, other) = (one?, other?);
    for (name, value) in other.as_object().into_iter().flatten() {
        one[name] = value.clone();
    }
    Ok(one)
}

#[test]
fn live_cell_posture_seen_from_outside_equals_the_report() {
    needs!(Need::Root, Need::Tool("nsenter"));
    let look = Look::take();
    assert_eq!(look.answer.verdict, Verdict::Cancelled);
    let mut wrong = Vec::new();
    for (id, seen) in &look.seen {
        let item = look.answer.controls.iter().find(|item| item["id"] == id.as_str()).expect("all 29 are reported");
        let same = |(name, value): (&String, &Value)| item["observed"][name] == *value;
        // Landlock of an older kernel, of which nothing outside tells.
        if item["state"] == "unavailable" && !item["required"].as_bool().unwrap() && kernel_version() < (6, 12) {
            continue;
        }
        match seen {
            Ok(facts) if item["state"] == "enforced" && facts.as_object().unwrap().iter().all(same) => {}
            Ok(facts) => wrong.push(format!("{id}: seen from outside: {facts}, reported: {item}")),
            Err(what) => wrong.push(format!("{id}: does not hold: {what}, reported: {item}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\ntool {:?}\ninit {:?}", look.tool, look.init);
    drop(look.instance);
}

#[test]
fn the_cell_s_init_holds_nothing_and_cannot_be_looked_into() {
    needs!(Need::Root);
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
pub(crate) fn is_dumpable(process: &Process) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(format!("/proc/{}/environ", process.pid)).expect("it is there");
    meta.uid() == process.uid
}

/// Every thread has one filter for what is fatal and one for what is left, beside those around the whole suite, and the
/// part has said that Landlock holds.
pub(crate) fn is_shut_in(instance: &Instance, process: &Process, part: &str) {
    let around: u32 = status_field(std::process::id(), "Seccomp_filters").unwrap().parse().unwrap();
    let threads = names(Path::new(&format!("/proc/{}/task", process.pid)));
    assert!(!threads.is_empty(), "{part}");
    for thread in threads.iter().map(|thread| thread.parse().unwrap()) {
        let filters = status_field(thread, "Seccomp_filters").map(|count| count.parse::<u32>().unwrap());
        assert_eq!(filters, Some(around + 2), "thread {thread} of the {part}");
        assert_eq!(status_field(thread, "Seccomp").as_deref(), Some("2"), "thread {thread} of the {part}");
        assert_eq!(status_field(thread, "NoNewPrivs").as_deref(), Some("1"), "thread {thread} of the {part}");
    }
    let said = format!("the {part} is confined");
    assert!(instance.log().contains(&said), "{}", instance.log());
}

#[test]
fn the_daemon_and_the_signer_have_no_privilege_and_no_way_to_gain_one() {
    needs!(Need::Root);
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
        is_shut_in(&instance, &process, if uid == base { "daemon" } else { "signer" });
        assert!(!is_dumpable(&process), "{what}");
        assert!(
            process
                .file("limits")
                .lines()
                .any(|line| { line.starts_with("Max core file size") && line.split_whitespace().nth(4) == Some("0") })
        );
        let own = Process::read(std::process::id()).unwrap();
        for kind in ["mnt", "net", "ipc"] {
            assert_ne!(process.namespace(kind), own.namespace(kind), "{kind} of {what}");
        }
        let place = if uid == base { "state" } else { "signer" };
        let seen: Vec<String> = names(&process.root("/")).into_iter().collect();
        assert_eq!(seen, [place], "nothing else of the host is in reach of {what}");
    }
}

#[test]
fn the_signer_alone_holds_the_key_and_the_launcher_opens_nothing_of_the_ledger() {
    needs!(Need::Root);
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
