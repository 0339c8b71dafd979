//! For what is missing, the one thing to do: which setting, mount, option, package or kernel.
//!
//! Pure: facts in, words out. Refusals of calls and starts take their words from here as well, so that nobody is told two
//! different things about one cause.

use nix::libc;
use toolcell_types::ControlId;
use toolcell_types::doctor::HostFacts;

use crate::container;

/// Why something cannot be had, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Why.
    pub why: String,
    /// What to do, one sentence.
    pub remedy: String,
}

impl Cause {
    fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: remedy.into() }
    }
}

/// The oldest kernel that has all that cells need (mount_setattr(2) is of 5.12, RLIMIT_NPROC per namespace of 5.14).
const KERNEL: (u32, u32) = (5, 14);

/// What accepting a missing control takes.
#[must_use]
pub fn accept(id: ControlId) -> String {
    format!("go without it, which every receipt then says: --accept-unavailable {id}")
}

/// A required control that reads back as something else, where nothing more is known.
#[must_use]
pub fn does_not_hold(id: ControlId) -> String {
    format!("see what of the kernel or its settings keeps {id} from working; or {}", accept(id))
}

/// Without a group there is no limit for a tree as a whole.
#[must_use]
pub fn no_groups(why: &str, is_root: bool, host: &HostFacts) -> Cause {
    let groups = container::groups(host.is_cgroup_v1);
    let remedy = match (host.container.is_some(), is_root) {
        (true, true) => format!("start the container with {groups} (groups that root of the host has made)"),
        (true, false) => format!(
            "start the container with {groups} (groups that root of the host has made and given to this user: chown -R); \
             or start toolcell as root"
        ),
        (false, true) => "mount cgroup version 2 (mount -t cgroup2 none /sys/fs/cgroup), or the version 1 controllers \
                          memory, cpu, cpuacct, pids and freezer"
            .to_owned(),
        (false, false) if host.is_cgroup_v1 => {
            "start toolcell as root; or give its user a cgroup, as root: for c in memory cpu cpuacct pids freezer; do mkdir \
             -p /sys/fs/cgroup/$c/NAME; chown -R USER /sys/fs/cgroup/$c/NAME; done, and name it: --cgroup-parent /NAME"
                .to_owned()
        }
        (false, false) => "start toolcell as root; or let it have a cgroup of its user's, by its user: systemd-run --user \
                           --pty -p Delegate=yes toolcell serve"
            .to_owned(),
    };
    Cause::new(format!("it needs a cgroup, and {why}"), remedy)
}

/// What is said of a user whom no line of /etc/subuid can be about.
pub const NAMELESS: &str = "has no name";
/// What is said where newuidmap cannot gain the privilege that it has by its file (prctl(2), PR_SET_NO_NEW_PRIVS).
pub const NO_NEW_PRIVS: &str = "no_new_privs is set";

/// Without ids of its own a cell runs under the user's.
#[must_use]
pub fn no_ids(why: &str) -> Cause {
    let told = format!("the tool would run under your own user id: {why}");
    // No line of /etc/subuid and no privilege of newuidmap's would change that.
    if why.contains(NAMELESS) || why.contains(NO_NEW_PRIVS) {
        return Cause::new(told, "start toolcell as root, or go without it, which every receipt then says");
    }
    Cause::new(
        told,
        "give cells ids of their own, as root: apt-get install uidmap; usermod --add-subuids 100000-165535 \
         --add-subgids 100000-165535 YOUR_NAME (any range that nobody else has in /etc/subuid)",
    )
}

/// What keeps an ordinary user, or a container's root, from having a user namespace. `errno` is what the kernel answered.
#[must_use]
pub fn no_user_namespaces(host: &HostFacts, errno: Option<i32>, is_root: bool) -> Cause {
    let or_root = if is_root { "" } else { "; or start toolcell as root" };
    let is = |name: &str, bad: &str| host.setting(name) == Some(bad);
    let set = |setting: &str| format!("{}sysctl -w {setting}{or_root}", on_the_host(host));
    if is("user.max_user_namespaces", "0") {
        let remedy = format!("allow some, as root: {}", set("user.max_user_namespaces=15000"));
        return Cause::new("user.max_user_namespaces is 0", remedy);
    }
    if !is_root && is("kernel.unprivileged_userns_clone", "0") {
        let remedy = format!("allow them, as root: {}", set("kernel.unprivileged_userns_clone=1"));
        return Cause::new("kernel.unprivileged_userns_clone is 0", remedy);
    }
    let apparmor = host.setting("kernel.apparmor_restrict_unprivileged_userns");
    if !is_root && apparmor.is_some_and(|value| value != "0") {
        return Cause::new(
            "AppArmor restricts them (kernel.apparmor_restrict_unprivileged_userns is 1)",
            format!(
                "lift it, as root: {}sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; or give this program an \
                 AppArmor profile with the rule `userns,`{or_root}",
                on_the_host(host)
            ),
        );
    }
    if errno == Some(libc::ENOSPC) {
        let remedy = format!("raise it, as root: {}", set("user.max_user_namespaces=15000"));
        return Cause::new(
            "as many as user.max_user_namespaces allows are in use, or they are nested too deep",
            remedy,
        );
    }
    Cause::new(
        "a filter or a security module refuses them, as containers have it by default",
        format!(
            "start a container with {}; elsewhere ask who administers the machine",
            container::security(host.has_apparmor)
        ),
    )
}

/// In a container settings of the kernel cannot be written, and are the host's.
#[must_use]
pub fn on_the_host(host: &HostFacts) -> &'static str {
    if host.container.is_some() { "on the host: " } else { "" }
}

/// Landlock is not there at all.
#[must_use]
pub fn no_landlock(host: &HostFacts) -> Cause {
    let remedy = match &host.lsm {
        Some(lsm) if !lsm.split(',').any(|name| name == "landlock") => {
            format!("boot with landlock in the list of security modules: lsm=landlock,{lsm}")
        }
        Some(_) | None => format!(
            "boot a kernel of 5.13 or later with landlock in its list of security modules (lsm=); in a container also start \
             it with {}",
            container::SECCOMP
        ),
    };
    Cause::new("this kernel has no Landlock in force", remedy)
}

/// Landlock is there, but not this part of it.
#[must_use]
pub fn old_landlock(id: ControlId, host: &HostFacts) -> Cause {
    let (needs, abi) = if id == ControlId::LandlockNet { ("6.7", 4) } else { ("6.12", 6) };
    Cause::new(
        format!("it needs Landlock ABI {abi}, of Linux {needs}; this is {}", host.release),
        format!("boot Linux {needs} or later; calls run without it, as it is a second line"),
    )
}

/// A kernel that cells cannot be had on, whatever is set.
#[must_use]
pub fn unsupported(host: &HostFacts) -> Option<Cause> {
    if host.machine != "x86_64" {
        return Some(Cause::new(format!("this machine is {}", host.machine), "use an x86_64 machine"));
    }
    // WSL 2 calls itself microsoft-standard-WSL2 and is Linux; gVisor shows this one version.
    if host.release.ends_with("-Microsoft") {
        let remedy = "use WSL 2, as administrator: wsl --set-version DISTRIBUTION 2";
        return Some(Cause::new("this is WSL 1, which is no Linux kernel", remedy));
    }
    if host.version.starts_with("#1 SMP Sun Jan 10 15:06:54 PST 2016") {
        let remedy = "use another container runtime, like runc, or the machine itself";
        return Some(Cause::new("this is gVisor, which has no Landlock and no mounts by descriptor", remedy));
    }
    if kernel_before(host, KERNEL) {
        let (major, minor) = KERNEL;
        return Some(Cause::new(
            format!("Linux {} is too old", host.release),
            format!("boot Linux {major}.{minor} or later"),
        ));
    }
    None
}

/// Whether the kernel is older than this; a release that cannot be read is not.
#[must_use]
pub fn kernel_before(host: &HostFacts, (major, minor): (u32, u32)) -> bool {
    let mut numbers = host.release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(seen)), Some(Ok(second))) => (seen, second) < (major, minor),
        _ => false,
    }
}

/// A step of building a cell that the kernel refused: which controls it is about, and what to do.
#[must_use]
pub fn of_step(stage: &str, errno: i32, detail: &str, host: &HostFacts, is_root: bool) -> (Vec<ControlId>, Cause) {
    let name = toolcell_types::names::errno(errno);
    let why = format!("the cell cannot be built: {stage}: {detail}");
    let with = |remedy: String| Cause::new(why.clone(), remedy);
    let has = |word: &str| detail.contains(word);
    if let Some(cause) = unsupported(host) {
        return (controls_of(stage, detail), with(format!("{}: {}", cause.why, cause.remedy)));
    }
    let remedy = match (stage, errno) {
        ("namespaces" | "identity", libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS) => {
            let cause = no_user_namespaces(host, Some(errno), is_root);
            return (controls_of(stage, detail), Cause::new(format!("{why}: {}", cause.why), cause.remedy));
        }
        ("mounts", libc::EPERM) if has("procfs") => masked_proc(host),
        ("mounts" | "image" | "seccomp" | "namespaces", libc::ENOSYS) => format!(
            "start a container with {}; elsewhere boot Linux {}.{} or later",
            container::SECCOMP,
            KERNEL.0,
            KERNEL.1
        ),
        ("landlock", _) => no_landlock(host).remedy,
        ("cgroups", libc::EROFS) => format!(
            "it is mounted read-only, as containers have it: start the container with {} (groups that root of the host has \
             made)",
            container::groups(host.is_cgroup_v1)
        ),
        ("cgroups", _) => no_groups("", true, host).remedy,
        _ => format!(
            "see what of the kernel or its settings answers {name} there, and report it if it is a plain machine"
        ),
    };
    (controls_of(stage, detail), with(remedy))
}

/// The kernel lets a new procfs show no more than the one that is there (mount_too_revealing in fs/namespace.c).
fn masked_proc(host: &HostFacts) -> String {
    if host.container.is_some() {
        return format!(
            "start the container with {}: its /proc is covered in parts, and the kernel then lets nobody mount one that is \
             not",
            container::SYSTEM_PATHS
        );
    }
    "unmount what is mounted over parts of /proc (findmnt --submounts /proc shows it): the kernel lets a new one show no \
     more than the one that is there"
        .to_owned()
}

fn controls_of(stage: &str, detail: &str) -> Vec<ControlId> {
    use ControlId as Id;
    match stage {
        "cgroups" => vec![Id::CgroupMemory, Id::CgroupCpu, Id::CgroupPids, Id::CpuClock],
        "namespaces" | "identity" => vec![Id::NamespaceUser],
        "mounts" if detail.contains("max_user_namespaces") => vec![Id::UsernsNested],
        "mounts" if detail.contains("procfs") || detail.contains("/proc") => vec![Id::ProcMasked],
        "mounts" | "image" => vec![Id::NamespaceMount],
        "supervise" => vec![Id::NamespacePid],
        "stdio" => vec![Id::FdsClosed],
        "landlock" => vec![Id::LandlockFs],
        "rlimits" => vec![Id::Rlimits],
        "capabilities" => vec![Id::Capabilities],
        "no-new-privs" => vec![Id::NoNewPrivs],
        "seccomp" => vec![Id::Seccomp],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(settings: &[(&str, &str)]) -> HostFacts {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        HostFacts { machine: "x86_64".into(), release: "6.18.1".into(), settings, ..HostFacts::default() }
    }

    fn told(cause: &Cause) -> String {
        format!("{}\n  {}", cause.why, cause.remedy)
    }

    #[test]
    fn each_setting_that_forbids_user_namespaces_is_named_with_its_sysctl() {
        let fine = ("user.max_user_namespaces", "96365");
        let all: Vec<String> = [
            (host(&[("user.max_user_namespaces", "0")]), libc::ENOSPC, false),
            (host(&[("user.max_user_namespaces", "0")]), libc::ENOSPC, true),
            (host(&[fine, ("kernel.unprivileged_userns_clone", "0")]), libc::EPERM, false),
            (host(&[fine, ("kernel.apparmor_restrict_unprivileged_userns", "1")]), libc::EACCES, false),
            (host(&[fine, ("kernel.apparmor_restrict_unprivileged_userns", "0")]), libc::ENOSPC, false),
            (host(&[]), libc::EPERM, false),
            (host(&[("kernel.apparmor_restrict_unprivileged_userns", "1")]), libc::EPERM, true),
        ]
        .iter()
        .map(|(host, errno, is_root)| told(&no_user_namespaces(host, Some(*errno), *is_root)))
        .collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn each_step_that_fails_is_about_its_controls_and_has_one_thing_to_do() {
        let in_docker = HostFacts { container: Some("/.dockerenv (Docker)".into()), ..host(&[]) };
        let old = HostFacts { release: "5.4.0-91-generic".into(), ..host(&[]) };
        let cases = [
            ("namespaces", libc::EPERM, "clone3 failed: Operation not permitted", &in_docker),
            ("namespaces", libc::ENOSPC, "clone3 failed: No space left on device", &host(&[])),
            ("identity", libc::EPERM, "write the id maps: Operation not permitted", &in_docker),
            ("mounts", libc::EPERM, "make a procfs: EPERM (item 0)", &in_docker),
            ("mounts", libc::EPERM, "make a procfs: EPERM (item 0)", &host(&[])),
            ("mounts", libc::ENOSYS, "make a tmpfs: ENOSYS (item 0)", &in_docker),
            ("mounts", libc::ENOSYS, "make a tmpfs: ENOSYS (item 0)", &old),
            ("mounts", libc::EACCES, "write user.max_user_namespaces: EACCES (item 0)", &host(&[])),
            ("landlock", libc::EOPNOTSUPP, "landlock_create_ruleset: EOPNOTSUPP (item 0)", &host(&[])),
            ("cgroups", libc::EROFS, "cannot make /sys/fs/cgroup/x: Read-only file system", &in_docker),
            ("cgroups", libc::ENODEV, "this machine's cgroups have no controllers", &host(&[])),
            ("seccomp", libc::EINVAL, "seccomp: EINVAL (item 0)", &host(&[])),
        ];
        let lines: Vec<String> = cases
            .iter()
            .map(|(stage, errno, detail, host)| {
                let (ids, cause) = of_step(stage, *errno, detail, host, true);
                let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
                format!("[{}] {}", ids.join(", "), told(&cause))
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn kernels_that_are_none_of_ours_are_told_by_name() {
        let with = |release: &str, version: &str, machine: &str| {
            let host = HostFacts {
                release: release.into(),
                version: version.into(),
                machine: machine.into(),
                ..HostFacts::default()
            };
            unsupported(&host).map(|cause| told(&cause)).unwrap_or_else(|| "fine".to_owned())
        };
        let all = [
            with("6.18.1", "", "x86_64"),
            with("5.15.167.4-microsoft-standard-WSL2", "#1 SMP", "x86_64"),
            with("4.4.0-22621-Microsoft", "#5640-Microsoft", "x86_64"),
            with("4.4.0", "#1 SMP Sun Jan 10 15:06:54 PST 2016", "x86_64"),
            with("5.13.0-52-generic", "", "x86_64"),
            with("5.14.0-503.el9.x86_64", "", "x86_64"),
            with("6.1.0", "", "aarch64"),
            with("unreadable", "", "x86_64"),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn what_is_to_be_done_depends_on_where_it_is_missing() {
        let without = HostFacts { lsm: Some("lockdown,capability,yama".into()), ..host(&[]) };
        let debian = HostFacts { release: "6.1.0-40-cloud-amd64".into(), ..host(&[]) };
        let version_1 = HostFacts { is_cgroup_v1: true, ..host(&[]) };
        let in_docker = HostFacts { container: Some("/.dockerenv (Docker)".into()), ..version_1.clone() };
        let forbidden = host(&[("user.max_user_namespaces", "0")]);
        let forbidden_in_docker = HostFacts { container: in_docker.container.clone(), ..forbidden };
        let all = [
            told(&no_landlock(&without)),
            told(&no_landlock(&host(&[]))),
            told(&old_landlock(ControlId::LandlockNet, &debian)),
            told(&old_landlock(ControlId::LandlockScope, &debian)),
            told(&no_groups("this machine has none", true, &host(&[]))),
            told(&no_groups("this machine has none", true, &in_docker)),
            told(&no_groups("without root this instance has none", false, &host(&[]))),
            told(&no_groups("without root this instance has none", false, &version_1)),
            told(&no_groups("without root this instance has none", false, &in_docker)),
            told(&no_ids("newuidmap is not installed")),
            told(&no_ids(&format!("user 1234 {NAMELESS}, by which newuidmap knows users"))),
            told(&no_user_namespaces(&forbidden_in_docker, Some(libc::ENOSPC), false)),
            does_not_hold(ControlId::Seccomp),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }
}
