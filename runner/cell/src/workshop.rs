//! From a plan to a cloned cell: validation, groups, host trees, pipes, clone, id maps.

mod off;

use std::os::fd::{AsFd as _, OwnedFd};

use nix::sched::CloneFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use toolcell_sys::{Child, ForkError};
use toolcell_types::plan::{ImageEntry, LaunchFault, MOUNTS_MAX, PATHS_MAX_BYTES, Prepare};
use toolcell_types::{CellId, ControlId, ControlSet};

use toolcell_doctor::probe::PROGRAM;

use crate::cgroup::{Cgroup, CgroupError, Instance};
use crate::devtree::DevTree;
use crate::hostpaths::{Denied, Deputy, Found, HostPathError, HostPaths, ImageError, ImagePath, Tree};
use crate::ids::{CellIds, Id, Ids};
use crate::opener::Rules;
use crate::readback::describe;
use crate::record::WORD_MAPPED;
use crate::stages::{Abi, CellSpec, Filters, RootEntry, RootPlan, enter};

/// What every cell is made with, the same for all.
#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) groups: Instance,
    pub(crate) dev: DevTree,
    pub(crate) filters: Filters,
    pub(crate) landlock: Abi,
    pub(crate) denied: Denied,
    pub(crate) ids: CellIds,
    pub(crate) deputy: Deputy,
    /// Whether controls may be switched off here. Said once, at the start.
    pub(crate) is_ablation: bool,
}

/// A cell that is being set up by its own init.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) group: Cgroup,
    pub(crate) init: Child,
    pub(crate) control: OwnedFd,
    /// Read ends of stdout and stderr, until they are passed to the daemon.
    pub(crate) outputs: Option<(OwnedFd, OwnedFd)>,
    pub(crate) ids: Ids,
    /// Those that it has with `identity.unprivileged`.
    pub(crate) own_ids: Ids,
    /// Controls that are switched off.
    pub(crate) off: ControlSet,
    /// Whether host paths of the caller's are shown inside.
    pub(crate) has_mounts: bool,
}

/// Descriptors that came with the plan.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) go: OwnedFd,
    pub(crate) stdin: Option<OwnedFd>,
    /// The program of a survey, to be shown in the cell; no caller's.
    pub(crate) program: Option<OwnedFd>,
}

/// What of a cell needs nothing of the caller's: made while the caller's mounts are opened.
#[derive(Debug)]
pub(crate) struct Begun {
    /// What was found at the image's paths, in their order.
    found: Vec<Found>,
    dev: OwnedFd,
}

impl Workshop {
    /// What openers of callers' mounts have to know.
    pub(crate) fn opening_rules(&self) -> Rules<'_> {
        Rules { denied: &self.denied, deputy: self.deputy, ids: self.ids }
    }

    /// Checks the plan and opens the image. There is no cell yet, and nothing to take back.
    pub(crate) fn begin(&self, slot: u32, plan: &Prepare<'_>) -> Result<Begun, LaunchFault> {
        validate(plan)?;
        off::may_be(plan.ablated, self.is_ablation, &self.groups)?;
        let paths = HostPaths::new(self.deputy, self.ids.of(slot));
        let found = open_image(&plan.image, &paths).map_err(|(host, error)| stage_fault("image", host, &error))?;
        let is_minimal = !plan.ablated.has(ControlId::DevMinimal);
        let dev = if is_minimal { self.dev.clone_tree() } else { off::machines_own("/dev", true) };
        let dev = dev.map_err(|error| io_fault("mounts", "clone /dev", &error))?;
        Ok(Begun { found, dev })
    }

    /// Builds up to the clone. On an error nothing is left but, at worst, groups that are logged.
    pub(crate) fn build(
        &self,
        (cell, slot): (CellId, u32),
        plan: &Prepare<'_>,
        Begun { found, dev }: Begun,
        (mut passed, trees): (Passed, Vec<Tree>),
    ) -> Result<Built, LaunchFault> {
        let off = plan.ablated;
        let own_ids = self.ids.of(slot);
        let is_somebody = !off.has(ControlId::IdentityUnprivileged);
        let ids = if is_somebody { own_ids } else { own_ids.with_own_tool() };
        let mut image = entries(&plan.image, found);
        let program = passed.program.take();
        image.extend(program.map(|tree| RootEntry::Tree { inside: PROGRAM, tree, is_dir: false }));
        let mounts = plan.mounts.iter().zip(trees);
        let mounts = mounts
            .map(|(mount, tree)| RootEntry::Tree { inside: mount.inside, tree: tree.tree, is_dir: tree.is_dir })
            .collect();
        let proc = off.has(ControlId::NamespacePid).then(|| off::machines_own("/proc", false));
        let proc = proc.transpose().map_err(|error| io_fault("mounts", "clone /proc", &error))?;
        let root = RootPlan { image, dev, proc, mounts };
        let mut group = self.groups.create(cell, &plan.limits, off).map_err(|error| group_fault(&error))?;
        match self.clone_cell(plan, passed, root, &group, ids) {
            Ok((init, control, stdout, stderr)) => {
                let has_mounts = !plan.mounts.is_empty();
                Ok(Built { group, init, control, outputs: Some((stdout, stderr)), ids, own_ids, off, has_mounts })
            }
            Err(fault) => {
                if let Err(error) = group.remove() {
                    tracing::warn!(%cell, error = %describe(&error), "a group of a cell that was not started stays behind");
                }
                Err(fault)
            }
        }
    }

    fn clone_cell(
        &self,
        plan: &Prepare<'_>,
        passed: Passed,
        root: RootPlan<'_>,
        group: &Cgroup,
        ids: Ids,
    ) -> Result<(Child, OwnedFd, OwnedFd, OwnedFd), LaunchFault> {
        let kernel = |what: &'static str| move |errno: rustix::io::Errno| io_fault("pipes", what, &errno.into());
        let (control, inner) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(kernel("socketpair"))?;
        rustix::net::sockopt::set_socket_passcred(&control, true).map_err(kernel("SO_PASSCRED"))?;
        let (stdout, stdout_inner) = output_pipe(ids.tool).map_err(kernel("stdout"))?;
        let (stderr, stderr_inner) = output_pipe(ids.tool).map_err(kernel("stderr"))?;
        let spec = CellSpec {
            control: inner,
            tasks: Vec::new(),
            root,
            limits: plan.limits,
            filters: &self.filters,
            landlock: self.landlock,
            go: passed.go,
            stdin: passed.stdin,
            stdout: stdout_inner,
            stderr: stderr_inner,
            ids,
            is_ungrouped: group.is_absent(),
            off: plan.ablated,
            trial_dir: off::trial_dir(plan.ablated)?,
        };
        let init = clone_into(group, spec, off::namespaces_but(plan.ablated))?;
        let is_mapped = !plan.ablated.has(ControlId::NamespaceUser);
        let mapped = if is_mapped { write_id_maps(&init, ids) } else { Ok(()) };
        if let Err(error) = mapped.and_then(|()| release(&control)) {
            end_at_once(&init);
            return Err(io_fault("identity", "write the id maps", &error));
        }
        Ok((init, control, stdout, stderr))
    }
}

/// The init is born in its group where groups can do that, so that nothing of it is ever counted elsewhere. Where they
/// cannot, or the kernel or a container's filter does not know it, joining is the first thing that it does.
fn clone_into(group: &Cgroup, mut spec: CellSpec<'_>, namespaces: CloneFlags) -> Result<Child, LaunchFault> {
    let cradle = group.cradle().map_err(|error| group_fault(&error))?;
    if let Some(cradle) = &cradle {
        match toolcell_sys::clone_process(namespaces.bits(), Some(cradle.as_fd()), || enter(&spec)) {
            Err(error) if is_unknown_to_the_kernel(error.errno()) => {}
            other => return other.map_err(|error| clone_fault(&error)),
        }
    }
    spec.tasks = group.tasks().map_err(|error| group_fault(&error))?;
    toolcell_sys::clone_process(namespaces.bits(), None, || enter(&spec)).map_err(|error| clone_fault(&error))
}

/// CLONE_INTO_CGROUP came with Linux 5.7: before, the larger structure is E2BIG and the flag EINVAL (clone(2)).
fn is_unknown_to_the_kernel(errno: i32) -> bool {
    matches!(errno, nix::libc::ENOSYS | nix::libc::EINVAL | nix::libc::E2BIG)
}

fn clone_fault(error: &ForkError) -> LaunchFault {
    LaunchFault::Stage { stage: "namespaces".to_owned(), errno: error.errno(), detail: describe(error) }
}

/// Inside 65533 and 65534, outside two ids that nobody else has. Written once; the kernel refuses a second time. The
/// child has not changed its ids yet, so that these files still belong to the launcher's user.
fn write_id_maps(init: &Child, ids: Ids) -> std::io::Result<()> {
    let process = std::path::PathBuf::from(format!("/proc/{}", init.pid.as_raw_nonzero()));
    for (name, lines) in ["uid_map", "gid_map"].into_iter().zip(ids.maps()) {
        let map = lines.join("\n");
        std::fs::OpenOptions::new()
            .write(true)
            .open(process.join(name))
            .and_then(|mut file| std::io::Write::write_all(&mut file, map.as_bytes()))?;
    }
    Ok(())
}

fn release(control: &OwnedFd) -> std::io::Result<()> {
    let _sent = rustix::net::send(control, &[WORD_MAPPED], rustix::net::SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Kills and reaps an init that cannot be used. SIGKILL to process 1 of a pid namespace ends all in it.
pub(crate) fn end_at_once(init: &Child) {
    if let Err(errno) = rustix::process::pidfd_send_signal(&init.pidfd, rustix::process::Signal::KILL) {
        tracing::warn!(error = %errno, "cannot kill a cell that is not needed");
    }
    let reap = || waitid(WaitId::PidFd(init.pidfd.as_fd()), WaitIdOptions::EXITED);
    if let Err(errno) = rustix::io::retry_on_intr(reap) {
        tracing::warn!(error = %errno, "cannot reap a cell that is not needed");
    }
}

/// The write end belongs to the tool, so that it can open /dev/stdout by name.
fn output_pipe(tool: Id) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let (user, group) = (rustix::fs::Uid::from_raw(tool.uid), rustix::fs::Gid::from_raw(tool.gid));
    rustix::fs::fchown(&write, Some(user), Some(group))?;
    Ok((read, write))
}

/// The launcher's own bounds on a plan, whatever the daemon checked.
pub(crate) fn validate(plan: &Prepare<'_>) -> Result<(), LaunchFault> {
    let bad = |detail: String| LaunchFault::BadPlan { detail };
    plan.limits.validate().map_err(|error| bad(error.to_string()))?;
    if plan.mounts.len() > MOUNTS_MAX || plan.image.len() > 256 || plan.caller.groups.len() > 65_536 {
        return Err(bad(format!("{} mounts and {} image entries are too many", plan.mounts.len(), plan.image.len())));
    }
    let inside = plan.image.iter().map(inside_of).chain(plan.mounts.iter().map(|mount| mount.inside));
    // The host's root is a path like any other here; that it contains our own directories is found when it is opened.
    let host = plan.mounts.iter().map(|mount| mount.host).filter(|host| *host != "/");
    let mut bytes = 0_usize;
    for path in inside.chain(host) {
        bytes = bytes.saturating_add(path.len());
        let plain = path.starts_with('/') && path.len() > 1 && !path.contains('\0');
        if !plain || path.split('/').skip(1).any(|part| matches!(part, "." | "..")) {
            let shown: String = path.chars().take(PATH_SHOWN).collect();
            return Err(bad(format!("{shown:?} is no absolute path without . and ..")));
        }
    }
    // What the launcher makes itself is not the daemon's to cover.
    let taken = plan.mounts.iter().map(|mount| mount.inside).find(|inside| is_reserved(inside));
    if let Some(inside) = taken {
        let shown: String = inside.chars().take(PATH_SHOWN).collect();
        return Err(bad(format!("nothing may be mounted at {shown:?}")));
    }
    if bytes > PATHS_MAX_BYTES {
        return Err(bad(format!("paths of {bytes} bytes in all, at most {PATHS_MAX_BYTES} are taken")));
    }
    Ok(())
}

/// Longest part of a path in a message, in characters.
const PATH_SHOWN: usize = 200;

/// Places of the image and of the launcher's own: the scratch itself, and all below the others.
fn is_reserved(inside: &str) -> bool {
    const WHOLE: [&str; 12] = [
        "/proc",
        "/sys",
        "/dev",
        "/etc",
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/run/toolcell",
    ];
    let path = std::path::Path::new(inside);
    path == std::path::Path::new("/tmp") || WHOLE.iter().any(|whole| path.starts_with(whole))
}

fn inside_of<'p>(entry: &ImageEntry<'p>) -> &'p str {
    match entry {
        ImageEntry::Dir { inside }
        | ImageEntry::Link { inside, .. }
        | ImageEntry::File { inside, .. }
        | ImageEntry::Bind { inside, .. } => inside,
        ImageEntry::Mirror { path } => path,
    }
}

/// Opens what the image shows of the host, in the order of its entries.
fn open_image<'p>(entries: &[ImageEntry<'p>], paths: &HostPaths) -> Result<Vec<Found>, ImageError<'p>> {
    let wanted: Vec<ImagePath<'p>> = entries
        .iter()
        .filter_map(|entry| match entry {
            ImageEntry::Bind { host, optional, .. } => Some(ImagePath { host, optional: *optional, keeps_link: false }),
            ImageEntry::Mirror { path } => Some(ImagePath { host: path, optional: true, keeps_link: true }),
            ImageEntry::Dir { .. } | ImageEntry::Link { .. } | ImageEntry::File { .. } => None,
        })
        .collect();
    paths.open_for_image(&wanted)
}

/// The image's entries in their order, with what was found for those that show something of the host.
fn entries<'p>(entries: &[ImageEntry<'p>], found: Vec<Found>) -> Vec<RootEntry<'p>> {
    let mut found = found.into_iter();
    let mut image = Vec::with_capacity(entries.len());
    for entry in entries {
        let inside = inside_of(entry);
        image.extend(match entry {
            ImageEntry::Dir { .. } => Some(RootEntry::Dir { inside }),
            ImageEntry::Link { target, .. } => Some(RootEntry::Link { inside, target: (*target).into() }),
            ImageEntry::File { content, .. } => Some(RootEntry::File { inside, content }),
            ImageEntry::Bind { .. } | ImageEntry::Mirror { .. } => match found.next() {
                Some(Found::Tree(opened)) => Some(RootEntry::Tree { inside, tree: opened.tree, is_dir: opened.is_dir }),
                Some(Found::Link(target)) => Some(RootEntry::Link { inside, target: target.into() }),
                Some(Found::Nothing) | None => None,
            },
        });
    }
    image
}

fn group_fault(error: &CgroupError) -> LaunchFault {
    let control = match error {
        // Not taken, as where a group above has less. What is taken and not kept is seen when the cell is read back.
        CgroupError::Access { action: "write", path, .. } => control_of(path),
        CgroupError::NoControllers { .. }
        | CgroupError::Enable { .. }
        | CgroupError::Access { .. }
        | CgroupError::NotANumber { .. }
        | CgroupError::Absent => None,
    };
    match control {
        Some(id) => LaunchFault::Control {
            id,
            detail: describe(error),
            remedy: "ask for a limit that the kernel can keep, or see what of the machine's groups is in the way"
                .to_owned(),
        },
        None => LaunchFault::Stage { stage: "cgroups".to_owned(), errno: error.errno(), detail: describe(error) },
    }
}

/// The control that a file of a group limits.
fn control_of(path: &std::path::Path) -> Option<ControlId> {
    let name = path.file_name()?.to_str()?;
    let controls =
        [("memory.", ControlId::CgroupMemory), ("pids.", ControlId::CgroupPids), ("cpu.", ControlId::CgroupCpu)];
    controls.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, id)| id)
}

fn stage_fault(stage: &str, host: &str, error: &HostPathError) -> LaunchFault {
    LaunchFault::Stage { stage: stage.to_owned(), errno: error.errno(), detail: format!("{host}: {}", describe(error)) }
}

fn io_fault(stage: &str, what: &str, error: &std::io::Error) -> LaunchFault {
    let errno = error.raw_os_error().unwrap_or(nix::libc::EIO);
    LaunchFault::Stage { stage: stage.to_owned(), errno, detail: format!("{what}: {error}") }
}

#[cfg(test)]
mod tests;
