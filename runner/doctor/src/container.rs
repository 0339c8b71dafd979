//! What a container has to be started with, as Docker and Podman name it. One place, so that errors, reports and the
//! documentation say the same. None of it is `--privileged`, and no capability is added.

/// Lets the calls through that cells are made with. The file lies beside the sources (`runner/cell/filters/container.json`)
/// and in the image (`/usr/share/toolcell/seccomp.json`).
pub const SECCOMP: &str = "--security-opt seccomp=toolcell-seccomp.json";
/// Leaves /proc whole, without which no other procfs may be mounted.
pub const SYSTEM_PATHS: &str = "--security-opt systempaths=unconfined";
/// Lets mounts through, where the host has AppArmor.
pub const APPARMOR: &str = "--security-opt apparmor=unconfined";
/// One group per controller, made on the host by its root, in the place of the container's own, which are read-only.
/// Version 1 of cgroups.
pub const GROUPS_V1: &str = "-v /sys/fs/cgroup/memory/toolcell-container:/sys/fs/cgroup/memory \
     -v /sys/fs/cgroup/cpu/toolcell-container:/sys/fs/cgroup/cpu -v /sys/fs/cgroup/cpuacct/toolcell-container:/sys/fs/cgroup/cpuacct \
     -v /sys/fs/cgroup/pids/toolcell-container:/sys/fs/cgroup/pids -v /sys/fs/cgroup/freezer/toolcell-container:/sys/fs/cgroup/freezer";
/// The same for version 2. With a cgroup namespace of the container's own no process could be moved into that group
/// (cgroups(7), nsdelegate).
pub const GROUPS_V2: &str = "--cgroupns host -v /sys/fs/cgroup/toolcell-container:/sys/fs/cgroup";
/// The ledger is kept on file systems of a machine alone, which an image's is not.
pub const STATE: &str = "-v toolcell-state:/var/lib/toolcell";

/// The flag for groups, by the version in which the memory controller is.
#[must_use]
pub fn groups(is_version_1: bool) -> &'static str {
    if is_version_1 { GROUPS_V1 } else { GROUPS_V2 }
}

/// Those for everything but groups and state.
#[must_use]
pub fn security(has_apparmor: bool) -> String {
    let apparmor = if has_apparmor { format!(" {APPARMOR}") } else { String::new() };
    format!("{SECCOMP} {SYSTEM_PATHS}{apparmor}")
}

/// All that root needs, for a message.
#[must_use]
pub fn all(is_version_1: bool, has_apparmor: bool) -> String {
    let (security, groups) = (security(has_apparmor), groups(is_version_1));
    format!("{security} {STATE} {groups} (groups that root of the host has made)")
}
