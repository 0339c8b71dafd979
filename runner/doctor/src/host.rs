//! What the host is like: read from /proc and /sys, never guessed. What cannot be read is left out.

use std::path::Path;

use toolcell_types::doctor::HostFacts;

/// Settings that matter to cells, by their sysctl names.
const SETTINGS: [&str; 11] = [
    "user.max_user_namespaces",
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
    "kernel.io_uring_disabled",
    "dev.tty.legacy_tiocsti",
    "kernel.perf_event_paranoid",
    "kernel.core_pattern",
    "kernel.unprivileged_bpf_disabled",
    "kernel.kptr_restrict",
    "vm.unprivileged_userfaultfd",
    "kernel.yama.ptrace_scope",
];
/// Longest value that is kept, in bytes.
const VALUE_MAX: usize = 200;

/// Looks at the host as this process sees it.
#[must_use]
pub fn host_facts() -> HostFacts {
    let name = rustix::system::uname();
    HostFacts {
        machine: name.machine().to_string_lossy().into_owned(),
        release: name.release().to_string_lossy().into_owned(),
        version: name.version().to_string_lossy().into_owned(),
        ..of(Path::new("/"))
    }
}

/// All that is read from files below `root`.
fn of(root: &Path) -> HostFacts {
    let status = text(root, "proc/self/status").unwrap_or_default();
    let groups = text(root, "proc/self/mountinfo").unwrap_or_default();
    HostFacts {
        settings: SETTINGS.iter().filter_map(|name| Some(((*name).to_owned(), setting(root, name)?))).collect(),
        lsm: text(root, "sys/kernel/security/lsm"),
        container: container(root),
        is_cgroup_v1: cgroup_v1(&groups).is_some(),
        has_apparmor: text(root, "sys/module/apparmor/parameters/enabled").as_deref() == Some("Y"),
        is_filtered: field(&status, "Seccomp:").is_some_and(|mode| mode == "2"),
        swap_bytes: text(root, "proc/meminfo").as_deref().and_then(swap_bytes),
        is_swap_counted: is_swap_counted(root, &groups),
        ..HostFacts::default()
    }
}

fn text(root: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_owned())
}

/// A dot in a sysctl's name is a folder (sysctl(8)).
fn setting(root: &Path, name: &str) -> Option<String> {
    let mut value = text(root, &format!("proc/sys/{}", name.replace('.', "/")))?;
    if let Some((at, _)) = value.char_indices().find(|(at, _)| *at >= VALUE_MAX) {
        value.truncate(at);
    }
    Some(value)
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn swap_bytes(meminfo: &str) -> Option<u64> {
    let kib = field(meminfo, "SwapTotal:")?.split_whitespace().next()?;
    kib.parse::<u64>().ok().map(|kib| kib.saturating_mul(1024))
}

/// The marks that container engines leave: Docker's and Podman's files, and systemd's (`container=` of process 1, which
/// it also puts into a file).
fn container(root: &Path) -> Option<String> {
    for (file, what) in [(".dockerenv", "/.dockerenv (Docker)"), ("run/.containerenv", "/run/.containerenv (Podman)")] {
        if root.join(file).exists() {
            return Some(what.to_owned());
        }
    }
    if let Some(name) = text(root, "run/systemd/container").filter(|name| !name.is_empty()) {
        return Some(format!("/run/systemd/container ({name})"));
    }
    let environment = std::fs::read(root.join("proc/1/environ")).unwrap_or_default();
    let mark = environment.split(|byte| *byte == 0).find_map(|word| word.strip_prefix(b"container="))?;
    Some(format!("container={} in the environment of process 1", String::from_utf8_lossy(mark)))
}

/// Where the first mount of this kind is (proc(5), mountinfo).
fn mount(mountinfo: &str, is_it: fn(&str, &str) -> bool) -> Option<&str> {
    mountinfo.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut words = right.split(' ');
        let (kind, options) = (words.next()?, words.nth(1)?);
        is_it(kind, options).then(|| left.split(' ').nth(4)).flatten()
    })
}

/// Where version 1 has the memory controller.
fn cgroup_v1(mountinfo: &str) -> Option<&str> {
    mount(mountinfo, |kind, options| kind == "cgroup" && options.split(',').any(|option| option == "memory"))
}

/// On version 1 the file for memory and swap is there only with swap accounting; on version 2 it is in every group but
/// the top one, of which memory.swap.max of any group tells (cgroup v2 documentation of the kernel).
fn is_swap_counted(root: &Path, mountinfo: &str) -> Option<bool> {
    if let Some(point) = cgroup_v1(mountinfo) {
        return Some(root.join(point.trim_start_matches('/')).join("memory.memsw.limit_in_bytes").exists());
    }
    let point = root.join(mount(mountinfo, |kind, _| kind == "cgroup2")?.trim_start_matches('/'));
    let has = |dir: &Path, name: &str| dir.join(name).exists();
    if has(&point, "memory.max") {
        return Some(has(&point, "memory.swap.max"));
    }
    let below = std::fs::read_dir(&point).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    below.filter(|dir| has(dir, "memory.max")).map(|dir| has(&dir, "memory.swap.max")).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn settings_are_read_and_what_the_kernel_lacks_is_left_out() {
        let root = host(&[
            ("proc/sys/kernel/io_uring_disabled", "2\n"),
            ("proc/sys/kernel/core_pattern", "|/usr/bin/handler %p\n"),
            ("proc/sys/kernel/yama/ptrace_scope", "1"),
            ("proc/meminfo", "MemTotal: 5 kB\nSwapTotal:    2048 kB\n"),
            ("proc/self/status", "Name: x\nSeccomp:\t2\nSeccomp_filters:\t1\n"),
        ]);
        let facts = of(root.path());
        assert_eq!(facts.setting("kernel.io_uring_disabled"), Some("2"));
        assert_eq!(facts.setting("kernel.core_pattern"), Some("|/usr/bin/handler %p"));
        assert_eq!(facts.setting("kernel.yama.ptrace_scope"), Some("1"));
        assert_eq!(facts.setting("dev.tty.legacy_tiocsti"), None);
        assert_eq!((facts.swap_bytes, facts.is_filtered, facts.container), (Some(2 << 20), true, None));
    }

    #[test]
    fn each_engine_s_mark_of_a_container_is_known() {
        let of_files = |files: &[(&str, &str)]| of(host(files).path()).container.unwrap_or_default();
        assert!(of_files(&[(".dockerenv", "")]).contains("Docker"));
        assert!(of_files(&[("run/.containerenv", "")]).contains("Podman"));
        assert!(of_files(&[("run/systemd/container", "lxc\n")]).contains("lxc"));
        assert!(of_files(&[("proc/1/environ", "A=b\0container=wsl\0")]).contains("wsl"));
        assert_eq!(of_files(&[("proc/1/environ", "A=b\0xcontainer=wsl\0")]), "");
    }

    #[test]
    fn whether_swap_is_counted_is_told_by_the_group_that_limits_memory() {
        let counted = |files: &[(&str, &str)], mounts: &str| is_swap_counted(host(files).path(), mounts);
        let v1 = "30 1 0:2 / /cg/memory rw - cgroup cgroup rw,memory\n31 1 0:3 / /cg/pids rw - cgroup cgroup rw,pids\n";
        assert_eq!(counted(&[("cg/memory/tasks", "")], v1), Some(false));
        assert_eq!(counted(&[("cg/memory/memory.memsw.limit_in_bytes", "")], v1), Some(true));
        let v2 = "30 1 0:2 / /cg rw - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(counted(&[("cg/a/memory.max", ""), ("cg/a/memory.swap.max", "")], v2), Some(true));
        assert_eq!(counted(&[("cg/a/memory.max", "")], v2), Some(false));
        assert_eq!(counted(&[], v2), None);
        assert_eq!(counted(&[], ""), None);
    }
}
