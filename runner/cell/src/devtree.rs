//! The /dev of every cell: made once, in a mount namespace of the launcher's own, cloned for each cell.
//!
//! Device nodes cannot be made in a user namespace, so they are made here, by root, on a small tmpfs that is then
//! read-only. No cell can write to it or to its directories.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sched::CloneFlags;
use rustix::fs::{CWD, FileType, Mode};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree, unmount,
};
use toolcell_sys::{MountAttr, set_mount_attributes};

use crate::stages::{DEV_LINKS, DEV_NODES, DEV_SHM};

/// The template, attached where nobody outside this namespace sees it.
#[derive(Debug)]
pub(crate) struct DevTree {
    root: OwnedFd,
    point: PathBuf,
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
        for node in DEV_NODES {
            let device = rustix::fs::makedev(node.major, node.minor);
            rustix::fs::mknodat(
                root.as_fd(),
                node.name,
                FileType::CharacterDevice,
                Mode::from_raw_mode(0o666),
                device,
            )?;
            // Again, without the umask.
            rustix::fs::chmodat(root.as_fd(), node.name, Mode::from_raw_mode(0o666), rustix::fs::AtFlags::empty())?;
        }
        for (name, target) in DEV_LINKS {
            rustix::fs::symlinkat(target, root.as_fd(), name)?;
        }
        rustix::fs::mkdirat(root.as_fd(), DEV_SHM, Mode::from_raw_mode(0o755))?;
        set_mount_attributes(root.as_fd(), MountAttr { read_only: true, ..MountAttr::default() }, false)?;
        Ok(Self { root, point })
    }

    /// A detached clone for one cell.
    pub(crate) fn clone_tree(&self) -> io::Result<OwnedFd> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = open_tree(self.root.as_fd(), "", flags)?;
        set_mount_attributes(tree.as_fd(), MountAttr { private: true, ..MountAttr::default() }, false)?;
        Ok(tree)
    }

    /// Takes the template away and the directory it was attached to.
    pub(crate) fn remove(self) -> io::Result<()> {
        unmount(&self.point, UnmountFlags::DETACH)?;
        std::fs::remove_dir(&self.point)
    }
}
