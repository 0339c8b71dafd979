//! Where in the tree an instance has its group, and how the controllers come down to it.
//!
//! In this order: the group that the operator names; our own group, if it can hand the controllers down and nobody but
//! us is in it (a service, a container), which then holds us in a leaf of its own; `toolcell` at the top.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::PARENT;
use super::super::files::{access, is_gone, members_of, put, read, remove_dir, write};
use super::{CgroupError, NEEDED, children, sweep_tree};

/// The leaf of our own group that we move to.
const RUNNER: &str = "runner";
/// Deeper than any tree of groups that people make.
const DEPTH_MAX: u32 = 24;
/// Processes that a message names.
const NAMED_MAX: usize = 8;

/// The mounted version 2 hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Mount {
    /// Where its top is.
    pub(super) point: PathBuf,
    /// Which group the top is, as /proc/PID/cgroup names it: not `/` where a part of the tree is mounted.
    root: String,
}

/// Finds it among the mounts. The error is what the best one lacks; none if there is no such mount.
pub(in super::super) fn mount(
    mounts: &[crate::mountinfo::Mount],
    controllers: impl Fn(&Path) -> String,
) -> Result<Mount, Option<Vec<&'static str>>> {
    let mut best: Option<Vec<&'static str>> = None;
    for found in mounts.iter().filter(|mount| mount.fs == "cgroup2") {
        let lacks = lacking(&controllers(&found.point));
        if lacks.is_empty() {
            return Ok(Mount { point: found.point.clone(), root: found.root.to_string_lossy().into_owned() });
        }
        best = best.filter(|known| known.len() <= lacks.len()).or(Some(lacks));
    }
    Err(best)
}

impl Mount {
    /// A group relative to the top, which is named by nothing.
    pub(super) fn below(&self, relative: &str) -> PathBuf {
        if relative.is_empty() { self.point.clone() } else { self.point.join(relative) }
    }

    /// A group below the top as /proc/PID/cgroup names it.
    pub(super) fn shown(&self, dir: &Path) -> String {
        let relative = dir.strip_prefix(&self.point).unwrap_or(dir);
        format!("{}/{}", self.root.trim_end_matches('/'), relative.display())
    }

    /// The reverse: a line of /proc/PID/cgroup as a group relative to the top. None for a group that is outside of
    /// what is mounted.
    pub(super) fn relative(&self, proc_cgroup: &str) -> Option<String> {
        let shown = proc_cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
        let relative = match shown.strip_prefix(self.root.trim_end_matches('/'))? {
            "" => "",
            below => below.strip_prefix('/')?,
        };
        // `/..` is what is shown of a group outside of our cgroup namespace.
        (!relative.split('/').any(|part| part == "..")).then(|| relative.to_owned())
    }
}

/// Our own group, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    /// Relative to the top.
    relative: String,
    /// Of the whole hierarchy: there processes and controllers may be side by side.
    is_root: bool,
    /// What it does not have and so cannot hand down.
    lacks: Vec<&'static str>,
    /// Whether processes are in it that do not run this program.
    has_strangers: bool,
}

/// Chooses the parent of this instance's group, moves this process out of the way if that is its own group, and removes
/// what this instance left elsewhere when it had another parent.
pub(in super::super) fn settle(mount: &Mount, given: Option<&str>, instance: &str) -> Result<String, CgroupError> {
    let own = own(mount)?;
    let parent = choose(given, own.as_ref());
    if given.is_none() && own.as_ref().is_some_and(is_ours) {
        enter_runner(&mount.below(&parent))?;
    }
    for dir in named(&mount.point, instance, DEPTH_MAX)? {
        tracing::info!(path = %dir.display(), "removing what an earlier start left");
        sweep_tree(&dir)?;
    }
    Ok(parent)
}

/// Whether our own group may be changed by who this process is, has the controllers, and holds nobody else (cgroups(7),
/// "Cgroups delegation: delegating a hierarchy to a less privileged user").
pub(in super::super) fn is_own_group_given(mount: &Mount) -> bool {
    let Ok(Some(own)) = own(mount) else { return false };
    let dir = mount.below(&own.relative);
    let may_write = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    let files = ["cgroup.procs", "cgroup.subtree_control"].map(|name| dir.join(name));
    is_ours(&own) && may_write(&dir) && files.iter().all(|file| may_write(file))
}

fn choose(given: Option<&str>, own: Option<&Own>) -> String {
    match (given, own) {
        (Some(given), _) => given.to_owned(),
        (None, Some(own)) if is_ours(own) => own.relative.clone(),
        (None, _) => PARENT.to_owned(),
    }
}

fn is_ours(own: &Own) -> bool {
    !own.is_root && own.lacks.is_empty() && !own.has_strangers
}

fn own(mount: &Mount) -> Result<Option<Own>, CgroupError> {
    let Some(relative) = mount.relative(&read(Path::new("/proc/self/cgroup"))?) else { return Ok(None) };
    let dir = mount.below(&relative);
    let members = members_of(&dir)?;
    Ok(Some(Own {
        // cgroups(7): only the root group of all has no cgroup.type.
        is_root: !dir.join("cgroup.type").exists(),
        lacks: lacking(&read(&dir.join("cgroup.controllers"))?),
        has_strangers: members.into_iter().any(|pid| !runs_this_program(pid)),
        relative,
    }))
}

fn lacking(controllers: &str) -> Vec<&'static str> {
    let has = |name: &&str| controllers.split_whitespace().any(|word| word == *name);
    NEEDED.into_iter().filter(|name| !has(name)).collect()
}

/// `serve`, its parts, and a `run` that started it. Who is gone meanwhile is no stranger; who cannot be looked at is,
/// like the 0 that stands for a process of another pid namespace.
fn runs_this_program(pid: i32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let file = |of: &str| fs::metadata(format!("/proc/{of}/exe")).map(|meta| (meta.dev(), meta.ino()));
    match (file("self"), file(&pid.to_string())) {
        (Ok(own), Ok(other)) => own == other,
        (Ok(_), Err(error)) => pid != 0 && error.kind() == io::ErrorKind::NotFound,
        (Err(_), _) => false,
    }
}

/// Moves all of us into a leaf, as a group with controllers for others holds no process.
fn enter_runner(own: &Path) -> Result<(), CgroupError> {
    let leaf = own.join(RUNNER);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(access("make", &leaf)(error)),
        Ok(()) | Err(_) => {}
    }
    let into = leaf.join("cgroup.procs");
    for pid in members_of(own)? {
        match put(&into, &pid.to_string()) {
            // It has ended meanwhile.
            Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => {}
            other => other.map_err(access("move a process into", &leaf))?,
        }
    }
    Ok(())
}

/// The way back, once no instance is left here: controllers off, out of the leaf, the leaf removed.
pub(super) fn leave_runner(mount: &Mount, parent: &Path) -> Result<(), CgroupError> {
    let leaf = parent.join(RUNNER);
    let own = mount.relative(&read(Path::new("/proc/self/cgroup"))?).map(|relative| mount.below(&relative));
    if own.as_deref() != Some(&leaf) {
        return Ok(());
    }
    let control = parent.join("cgroup.subtree_control");
    let off: Vec<String> = NEEDED.iter().map(|name| format!("-{name}")).collect();
    put(&control, &off.join(" ")).map_err(access("write", &control))?;
    write(&parent.join("cgroup.procs"), 0)?;
    remove_dir(&leaf)
}

/// Makes `dir` below `top` with its parents, each of which hands the needed controllers down, `dir` itself included.
pub(super) fn hand_down_to(top: &Path, dir: &Path) -> Result<(), CgroupError> {
    let mut at = top.to_owned();
    hand_down(&at)?;
    for name in dir.strip_prefix(top).unwrap_or(dir).components() {
        at.push(name);
        match fs::create_dir(&at) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(access("make", &at)(error)),
            Ok(()) | Err(_) => {}
        }
        hand_down(&at)?;
    }
    Ok(())
}

/// Enables what is not enabled yet, so that a group that was prepared for us need not be ours to change.
fn hand_down(dir: &Path) -> Result<(), CgroupError> {
    let control = dir.join("cgroup.subtree_control");
    let controllers = lacking(&read(&control)?);
    if controllers.is_empty() {
        return Ok(());
    }
    let on: Vec<String> = controllers.iter().map(|name| format!("+{name}")).collect();
    put(&control, &on.join(" ")).map_err(|source| {
        // ENOENT means a controller that is not there, unless the group itself is not.
        if is_gone(&source) && !dir.exists() {
            return access("write", &control)(source);
        }
        let why = why(&source, dir);
        CgroupError::Enable { path: dir.to_owned(), controllers, why, source }
    })
}

/// What the kernel means by its answer to a write to `cgroup.subtree_control` (cgroups(7)).
fn why(error: &io::Error, dir: &Path) -> String {
    match error.raw_os_error() {
        Some(nix::libc::EBUSY) => format!("processes are in that group itself ({})", members_named(dir)),
        Some(nix::libc::ENOENT) => "the group above does not hand them down to it".to_owned(),
        Some(nix::libc::EACCES | nix::libc::EPERM) => "the group is not delegated to us".to_owned(),
        Some(nix::libc::EROFS) => "the cgroup file system is mounted read-only".to_owned(),
        Some(nix::libc::EOPNOTSUPP) => "the group is one of threads".to_owned(),
        _ => "the kernel refuses".to_owned(),
    }
}

/// `17 bash, 23 sleep`.
fn members_named(dir: &Path) -> String {
    let members = members_of(dir).unwrap_or_default();
    let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
    let mut named: Vec<String> =
        members.iter().take(NAMED_MAX).map(|pid| format!("{pid} {}", name(pid)).trim().to_owned()).collect();
    if members.len() > NAMED_MAX {
        named.push(format!("{} more", members.len() - NAMED_MAX));
    }
    if named.is_empty() { "of another pid namespace".to_owned() } else { named.join(", ") }
}

/// Every group with exactly this name below `dir`. An instance's name is random and its state's alone.
fn named(dir: &Path, name: &str, depth: u32) -> Result<Vec<PathBuf>, CgroupError> {
    let mut found = Vec::new();
    let below = match children(dir) {
        // A group of somebody's that is gone by now.
        Err(CgroupError::Access { source, .. }) if is_gone(&source) => return Ok(found),
        other => other?,
    };
    for child in below {
        if child.file_name().is_some_and(|of_child| of_child == name) {
            found.push(child);
        } else if depth > 0 {
            found.extend(named(&child, name, depth - 1)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
