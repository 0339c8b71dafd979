//! The root of a cell, built by descriptor from nothing, and entered with pivot_root(2).
//!
//! No path is ever looked up twice: each mount is attached to a directory that was opened beneath the new root without
//! following links. What comes from the host arrives as detached, read-only trees that the launcher opened.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};
use toolcell_sys::{MountAttr, clear_mount_attributes, set_mount_attributes};
use toolcell_types::{ControlId, ControlSet, Limits};

use crate::record::{At as _, Op, Stage, StageError};

/// A device node of the minimal /dev.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DevNode {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl DevNode {
    /// Its number.
    pub(crate) fn device(self) -> rustix::fs::Dev {
        rustix::fs::makedev(self.major, self.minor)
    }
}

/// null(4), zero, full(4), random(4), urandom.
pub(crate) const DEV_NODES: [DevNode; 5] = [
    DevNode { name: "null", path: "/dev/null", major: 1, minor: 3 },
    DevNode { name: "zero", path: "/dev/zero", major: 1, minor: 5 },
    DevNode { name: "full", path: "/dev/full", major: 1, minor: 7 },
    DevNode { name: "random", path: "/dev/random", major: 1, minor: 8 },
    DevNode { name: "urandom", path: "/dev/urandom", major: 1, minor: 9 },
];
/// Links of the minimal /dev.
pub(crate) const DEV_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
/// The directory of /dev that the scratch is also shown at.
pub(crate) const DEV_SHM: &str = "shm";
/// The only writable mounts, both of one file system with one quota.
pub(crate) const SCRATCH_MOUNTS: [&str; 2] = ["/tmp", "/dev/shm"];
/// Paths of /proc that show nothing (the OCI runtime's list; those of /sys do not exist here, as no sysfs is mounted).
pub(crate) const MASKED_PROC: [&str; 10] = [
    "acpi",
    "asound",
    "interrupts",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
];
/// Paths of /proc that must not be written (the OCI runtime's list). Here the whole of /proc is read-only, which is more.
pub(crate) const READ_ONLY_PROC: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];

/// One thing in the root.
#[derive(Debug)]
pub(crate) enum RootEntry<'a> {
    Dir { inside: &'a str },
    Link { inside: &'a str, target: std::borrow::Cow<'a, str> },
    File { inside: &'a str, content: &'a str },
    Tree { inside: &'a str, tree: OwnedFd, is_dir: bool },
}

/// What the root is made of.
#[derive(Debug)]
pub(crate) struct RootPlan<'a> {
    /// The image, in order.
    pub(crate) image: Vec<RootEntry<'a>>,
    /// /dev as a detached tree.
    pub(crate) dev: OwnedFd,
    /// The launcher's /proc as a detached tree, for a cell without a pid namespace of its own.
    pub(crate) proc: Option<OwnedFd>,
    /// What the caller adds, as detached trees.
    pub(crate) mounts: Vec<RootEntry<'a>>,
}

impl RootPlan<'_> {
    /// Every descriptor that the child needs.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        let trees = self.image.iter().chain(&self.mounts).filter_map(|entry| match entry {
            RootEntry::Tree { tree, .. } => Some(tree.as_raw_fd()),
            RootEntry::Dir { .. } | RootEntry::Link { .. } | RootEntry::File { .. } => None,
        });
        trees.chain([self.dev.as_raw_fd()]).chain(self.proc.as_ref().map(|tree| tree.as_raw_fd())).collect()
    }
}

const QUIET: MountAttr = MountAttr { read_only: true, no_suid: true, no_dev: true, no_exec: false, private: false };

/// A fresh tmpfs that is attached nowhere yet: nosuid, nodev.
pub(crate) fn tmpfs(options: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(context.as_fd(), *name, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    let attr = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attr)
}

/// Builds the root and enters it. On return nothing of the host's mounts is left in this namespace.
pub(super) fn build(plan: &RootPlan<'_>, limits: &Limits, off: ControlSet) -> Result<(), StageError> {
    let stage = Stage::Mounts;
    if off.has(ControlId::NamespaceMount) {
        // The machine's mounts as they are. The limit of user namespaces is that of who writes it, whatever /proc.
        if limits_user_namespaces(off) {
            forbid_user_namespaces(CWD, "/proc/sys/user/max_user_namespaces")?;
        }
        return rustix::process::chdir("/").at(stage, Op::WorkingDir);
    }
    let root = tmpfs(&[("size", "4m"), ("nr_inodes", "4096"), ("mode", "0755")]).at(stage, Op::NewTmpfs)?;
    // Attached first, as nothing can be attached to a detached mount before Linux 6.15.
    attach(root.as_fd(), CWD, "/").at(stage, Op::Attach)?;
    let mut last = None;
    for (index, entry) in plan.image.iter().enumerate() {
        place(root.as_fd(), &mut last, entry, index)?;
    }
    make_dir(root.as_fd(), "dev").at(stage, Op::MakeDir)?;
    attach(plan.dev.as_fd(), root.as_fd(), "dev").at(stage, Op::Attach)?;
    proc(root.as_fd(), plan.proc.as_ref(), off)?;
    scratch(root.as_fd(), limits, off)?;
    for (index, entry) in plan.mounts.iter().enumerate() {
        // Under operations of their own, so that the launcher can name the caller's path.
        place(root.as_fd(), &mut None, entry, index).map_err(|error| StageError {
            op: if error.op == Op::Attach { Op::CallerAttach } else { Op::CallerPoint },
            ..error
        })?;
    }
    set_mount_attributes(root.as_fd(), QUIET, false).at(stage, Op::ReadOnly)?;
    loosen(root.as_fd(), off).at(stage, Op::Loosen)?;
    rustix::process::fchdir(root.as_fd()).at(stage, Op::Pivot)?;
    rustix::process::pivot_root(".", ".").at(stage, Op::Pivot)?;
    unmount(".", UnmountFlags::DETACH).at(stage, Op::Detach)?;
    rustix::process::chdir("/").at(stage, Op::WorkingDir)
}

/// Takes off every mount what is not to be in force.
fn loosen(root: BorrowedFd<'_>, off: ControlSet) -> std::io::Result<()> {
    let free = off.has(ControlId::MountsNosuidNodev);
    if off.has(ControlId::RootReadonly) {
        let attr = MountAttr { read_only: true, ..MountAttr::default() };
        clear_mount_attributes(root, attr, true)?;
        // /dev is every cell's, and what one did to it all would have.
        set_mount_attributes(beneath(root, "dev", OFlags::DIRECTORY)?.as_fd(), attr, false)?;
        if !off.has(ControlId::ProcMasked) {
            // That /proc is read-only is another control's.
            set_mount_attributes(beneath(root, "proc", OFlags::DIRECTORY)?.as_fd(), attr, true)?;
        }
    }
    if free {
        clear_mount_attributes(root, MountAttr { no_suid: true, no_dev: true, ..MountAttr::default() }, true)?;
    }
    Ok(())
}

fn attach(tree: BorrowedFd<'_>, dir: BorrowedFd<'_>, at: &str) -> Result<(), Errno> {
    move_mount(tree, "", dir, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

fn attach_on(tree: BorrowedFd<'_>, point: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", point, "", flags)
}

fn clone_tree(dir: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    open_tree(dir, path, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)
}

fn make_dir(dir: BorrowedFd<'_>, path: &str) -> Result<(), Errno> {
    rustix::fs::mkdirat(dir, path, Mode::from_raw_mode(0o755))
}

/// The directory that something was put in last, which is mostly that of the next thing as well.
type LastDir<'p> = Option<(&'p str, OwnedFd)>;

/// Puts one entry below the root. Parents are made where they are missing.
fn place<'p>(
    root: BorrowedFd<'_>,
    last: &mut LastDir<'p>,
    entry: &'p RootEntry<'_>,
    index: usize,
) -> Result<(), StageError> {
    let stage = Stage::Mounts;
    let (inside, op) = match entry {
        RootEntry::Dir { inside } => return open_dir(root, inside).map(drop).at_item(stage, Op::MakeDir, index),
        RootEntry::Link { inside, .. } | RootEntry::File { inside, .. } => (inside, Op::MakeDir),
        RootEntry::Tree { inside, .. } => (inside, Op::MountPoint),
    };
    let (parent, name) = inside.rsplit_once('/').ok_or(Errno::INVAL).at_item(stage, op, index)?;
    if last.as_ref().is_none_or(|(path, _)| *path != parent) {
        *last = Some((parent, open_dir(root, parent).at_item(stage, op, index)?));
    }
    let dir = last.as_ref().map_or(root, |(_, dir)| dir.as_fd());
    match entry {
        RootEntry::Dir { .. } => Ok(()),
        RootEntry::Link { target, .. } => {
            rustix::fs::symlinkat(target.as_ref(), dir, name).at_item(stage, Op::MakeLink, index)
        }
        RootEntry::File { content, .. } => {
            let file = make_file(dir, name, 0o444).at_item(stage, Op::MakeFile, index)?;
            write_all(file.as_fd(), content.as_bytes()).at_item(stage, Op::MakeFile, index)
        }
        RootEntry::Tree { tree, is_dir, .. } => {
            let point = mount_point(dir, name, *is_dir).at_item(stage, Op::MountPoint, index)?;
            attach_on(tree.as_fd(), point.as_fd()).at_item(stage, Op::Attach, index)?;
            // What was opened below may be covered now.
            *last = None;
            Ok(())
        }
    }
}

fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let written = rustix::io::write(file, bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

fn make_file(dir: BorrowedFd<'_>, name: &str, mode: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode))
}

/// Opens a directory beneath `root`, making what is missing, without following any link (openat2(2)).
fn open_dir(root: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let mut dir = beneath(root, ".", OFlags::DIRECTORY)?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        match make_dir(dir.as_fd(), part) {
            Ok(()) | Err(Errno::EXIST) => {}
            // Below a mount of the caller's: usable if it is there, which the next line finds out.
            Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
        dir = beneath(dir.as_fd(), part, OFlags::DIRECTORY)?;
    }
    Ok(dir)
}

fn beneath(dir: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(dir, path, flags | OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// What a tree is attached on, made where it is missing.
fn mount_point(dir: BorrowedFd<'_>, name: &str, is_dir: bool) -> Result<OwnedFd, Errno> {
    let made = if is_dir { make_dir(dir, name) } else { make_file(dir, name, 0o444).map(drop) };
    match made {
        // Below a mount of the caller's: usable if it is there, which the next line finds out.
        Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS | Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    beneath(dir, name, if is_dir { OFlags::DIRECTORY } else { OFlags::empty() })
}

/// A fresh procfs of the new pid namespace: user namespaces limited to none, dangerous files masked, all read-only.
fn proc(root: BorrowedFd<'_>, shared: Option<&OwnedFd>, off: ControlSet) -> Result<(), StageError> {
    let stage = Stage::Mounts;
    make_dir(root, "proc").at(stage, Op::MakeDir)?;
    let fresh = match shared {
        Some(_) => None,
        None => Some(procfs(!off.has(ControlId::ProcMasked)).at(stage, Op::NewProc)?),
    };
    let proc = shared.or(fresh.as_ref()).ok_or(Errno::NODEV).at(stage, Op::NewProc)?;
    if limits_user_namespaces(off) {
        // Through this very procfs, before it is attached anywhere or read-only: nobody can have put anything in between.
        forbid_user_namespaces(proc.as_fd(), "sys/user/max_user_namespaces")?;
    }
    attach(proc.as_fd(), root, "proc").at(stage, Op::Attach)?;
    if off.has(ControlId::ProcMasked) {
        return Ok(());
    }
    for (index, name) in MASKED_PROC.into_iter().enumerate() {
        mask(root, proc.as_fd(), name).at_item(stage, Op::Mask, index)?;
    }
    set_mount_attributes(proc.as_fd(), MountAttr { no_exec: true, ..QUIET }, false).at(stage, Op::ReadOnly)
}

/// A procfs of this process's pid namespace, attached nowhere. Of other users' processes, which is the init, not even the
/// name shows if it `hides` them (proc(5), Linux 5.8 for the word).
fn procfs(hides: bool) -> Result<OwnedFd, Errno> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    if hides {
        fsconfig_set_string(context.as_fd(), "hidepid", "invisible")?;
    }
    fsconfig_create(context.as_fd())?;
    let attr = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attr)
}

/// Never without a user namespace of the cell's own: it would be the machine's.
fn limits_user_namespaces(off: ControlSet) -> bool {
    !off.has(ControlId::UsernsNested) && !off.has(ControlId::NamespaceUser)
}

fn forbid_user_namespaces(dir: BorrowedFd<'_>, path: &str) -> Result<(), StageError> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let limit = rustix::fs::openat(dir, path, flags, Mode::empty()).at(Stage::Mounts, Op::UserLimit)?;
    // Closed after: a mount with a file open for writing cannot become read-only.
    rustix::io::write(&limit, b"0").map(drop).at(Stage::Mounts, Op::UserLimit)
}

/// Covers one path of /proc: a file with an unusable device, a directory with an empty one. What this kernel lacks stays.
fn mask(root: BorrowedFd<'_>, proc: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    let point = match beneath(proc, name, OFlags::empty()) {
        Ok(point) => point,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let is_dir = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&point)?.st_mode).is_dir();
    let cover = if is_dir { clone_tree(root, "dev/shm")? } else { clone_tree(root, "dev/null")? };
    // With nodev the null device cannot even be opened, so that a masked file is refused instead of empty, and /dev
    // stays the only mount with device nodes.
    set_mount_attributes(cover.as_fd(), QUIET, false)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    attach_on(cover.as_fd(), point.as_fd())
}

/// One tmpfs with the quota, shown at /tmp and at /dev/shm.
fn scratch(root: BorrowedFd<'_>, limits: &Limits, off: ControlSet) -> Result<(), StageError> {
    let stage = Stage::Mounts;
    // 0 is no limit (tmpfs(5)).
    let limits = if off.has(ControlId::TmpQuota) { (0, 0) } else { (limits.tmp_bytes, limits.tmp_inodes) };
    let (size, inodes) = (limits.0.to_string(), limits.1.to_string());
    let whole = tmpfs(&[("size", &size), ("nr_inodes", &inodes), ("mode", "0755")]).at(stage, Op::NewTmpfs)?;
    make_dir(root, "tmp").at(stage, Op::MakeDir)?;
    for (index, _path) in SCRATCH_MOUNTS.into_iter().enumerate() {
        let name = index.to_string();
        rustix::fs::mkdirat(whole.as_fd(), name.as_str(), Mode::from_raw_mode(0o1777)).at(stage, Op::MakeDir)?;
        // Again, without the umask.
        rustix::fs::chmodat(whole.as_fd(), name.as_str(), Mode::from_raw_mode(0o1777), rustix::fs::AtFlags::empty())
            .at(stage, Op::MakeDir)?;
    }
    // Before Linux 6.15 open_tree(2) clones only what is attached in this namespace: then it is, for a moment. Taking it
    // off again waits for every processor (namespace_unlock in fs/namespace.c).
    let parts = match scratch_parts(whole.as_fd()) {
        Err(Errno::INVAL) => {
            attach(whole.as_fd(), root, "tmp").at(stage, Op::Attach)?;
            let parts = scratch_parts(whole.as_fd()).at(stage, Op::NewTmpfs)?;
            rustix::process::fchdir(root).at(stage, Op::WorkingDir)?;
            unmount("tmp", UnmountFlags::DETACH).at(stage, Op::Detach)?;
            parts
        }
        other => other.at(stage, Op::NewTmpfs)?,
    };
    for (part, path) in &parts {
        let point = beneath(root, path.trim_start_matches('/'), OFlags::DIRECTORY).at(stage, Op::MountPoint)?;
        attach_on(part.as_fd(), point.as_fd()).at(stage, Op::Attach)?;
    }
    Ok(())
}

/// A tree for each place that the scratch is shown at.
fn scratch_parts(whole: BorrowedFd<'_>) -> Result<Vec<(OwnedFd, &'static str)>, Errno> {
    let part = |(index, path): (usize, &'static str)| Ok((clone_tree(whole, &index.to_string())?, path));
    SCRATCH_MOUNTS.into_iter().enumerate().map(part).collect()
}
