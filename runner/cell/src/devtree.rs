//! The /dev of every cell: made once, in a mount namespace of the launcher's own, cloned for each cell.
//!
//! Device nodes cannot be made in a user namespace, so they are made here, by root, on a small tmpfs that is then
//! read-only. Where the kernel lets nobody make them, as without root or in a container, the host's five nodes are bound
//! one by one instead, each after a look at what it is. No cell can write to it or to its directories.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sched::CloneFlags;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree, unmount,
};
use toolcell_sys::{MountAttr, set_mount_attributes};

use crate::stages::{DEV_LINKS, DEV_NODES, DEV_SHM, DevNode};

/// The template, attached where nobody outside this namespace sees it.
#[derive(Debug)]
pub(crate) struct DevTree {
    root: OwnedFd,
    point: PathBuf,
    nodes: Nodes,
}

/// Where the device nodes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nodes {
    /// Made in the template.
    Made,
    /// The host's, each a mount of its own on a file of the template.
    Bound,
}

impl DevTree {
    /// Moves the launcher into its own mount namespace, into which later mounts of the host still propagate, and
    /// makes the template below `runtime_dir`. Each instance has a directory of its own there: removing one that several
    /// attach to would detach the template of the others (d_invalidate in fs/dcache.c).
    pub(crate) fn build(runtime_dir: &Path, instance: &str) -> io::Result<Self> {
        nix::sched::unshare(CloneFlags::CLONE_NEWNS)?;
        mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
        let point = runtime_dir.join(format!("dev-{instance}"));
        match std::fs::create_dir(&point) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (name, value) in [("size", "64k"), ("nr_inodes", "32"), ("mode", "0755")] {
            fsconfig_set_string(context.as_fd(), name, value)?;
        }
        fsconfig_create(context.as_fd())?;
        let attr = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let root = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attr)?;
        move_mount(root.as_fd(), "", CWD, &point, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        let nodes = fill(root.as_fd())?;
        for (name, target) in DEV_LINKS {
            rustix::fs::symlinkat(target, root.as_fd(), name)?;
        }
        rustix::fs::mkdirat(root.as_fd(), DEV_SHM, Mode::from_raw_mode(0o755))?;
        set_mount_attributes(root.as_fd(), MountAttr { read_only: true, ..MountAttr::default() }, false)?;
        Ok(Self { root, point, nodes })
    }

    /// Where its device nodes come from.
    pub(crate) fn nodes(&self) -> Nodes {
        self.nodes
    }

    /// A detached clone for one cell.
    pub(crate) fn clone_tree(&self) -> io::Result<OwnedFd> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let with_nodes = match self.nodes {
            Nodes::Made => OpenTreeFlags::empty(),
            Nodes::Bound => OpenTreeFlags::AT_RECURSIVE,
        };
        let tree = open_tree(self.root.as_fd(), "", flags | with_nodes)?;
        let private = MountAttr { private: true, ..MountAttr::default() };
        set_mount_attributes(tree.as_fd(), private, self.nodes == Nodes::Bound)?;
        Ok(tree)
    }

    /// Takes the template away and the directory it was attached to.
    pub(crate) fn remove(self) -> io::Result<()> {
        unmount(&self.point, UnmountFlags::DETACH)?;
        std::fs::remove_dir(&self.point)
    }
}

/// Makes the nodes. EPERM for the first (mknod(2): no privilege in the machine's own user namespace, or a container's rule
/// for devices) means that they have to be bound.
fn fill(root: BorrowedFd<'_>) -> io::Result<Nodes> {
    for (index, node) in DEV_NODES.into_iter().enumerate() {
        match make_node(root, node) {
            Err(error) if index == 0 && error.raw_os_error() == Some(nix::libc::EPERM) => return bind_all(root),
            other => other?,
        }
    }
    Ok(Nodes::Made)
}

fn bind_all(root: BorrowedFd<'_>) -> io::Result<Nodes> {
    set_mount_attributes(root, MountAttr { no_dev: true, ..MountAttr::default() }, false)?;
    DEV_NODES.into_iter().try_for_each(|node| bind_node(root, node))?;
    Ok(Nodes::Bound)
}

fn make_node(root: BorrowedFd<'_>, node: DevNode) -> io::Result<()> {
    let mode = Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(root, node.name, FileType::CharacterDevice, mode, node.device())?;
    // Again, without the umask.
    Ok(rustix::fs::chmodat(root, node.name, mode, rustix::fs::AtFlags::empty())?)
}

/// Nodev cannot be on this mount, or it could not be opened. What it is on the host was locked in by its owner.
fn bind_node(root: BorrowedFd<'_>, node: DevNode) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let host = rustix::fs::open(node.path, flags, Mode::empty())?;
    require_device(host.as_fd(), node)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(host.as_fd(), "", flags)?;
    let attr = MountAttr { read_only: true, no_suid: true, no_exec: true, private: true, ..MountAttr::default() };
    set_mount_attributes(tree.as_fd(), attr, false)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    drop(rustix::fs::openat(root, node.name, flags, Mode::from_raw_mode(0o444))?);
    move_mount(tree.as_fd(), "", root, node.name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    require_device(rustix::fs::openat(root, node.name, flags, Mode::empty())?.as_fd(), node)
}

/// Somebody may have put anything else in that place of the host.
fn require_device(file: BorrowedFd<'_>, node: DevNode) -> io::Result<()> {
    let stat = rustix::fs::fstat(file)?;
    if FileType::from_raw_mode(stat.st_mode).is_char_device() && stat.st_rdev == node.device() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{} is not device {}:{}", node.path, node.major, node.minor)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_device_in_the_place_of_one_is_not_taken() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let [wanted, other, ..] = DEV_NODES;
        assert!(require_device(null.as_fd(), wanted).is_ok());
        assert!(require_device(null.as_fd(), other).is_err());
        assert!(require_device(std::fs::File::open("/etc/passwd").unwrap().as_fd(), wanted).is_err());
    }
}
