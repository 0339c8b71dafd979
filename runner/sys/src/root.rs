//! A root of our own for a part that needs almost nothing of the host's files.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use nix::sched::CloneFlags;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree, unmount,
};

use crate::{MountAttr, set_mount_attributes};

/// One directory that stays reachable.
#[derive(Debug, Clone, Copy)]
pub struct RootBind<'a> {
    /// The directory, opened before.
    pub source: BorrowedFd<'a>,
    /// Its name directly below the new root, without a slash.
    pub at: &'a str,
    /// Whether it can only be read.
    pub read_only: bool,
    /// Names in it that are covered: what is behind them can be neither read nor changed nor moved. One that is not there
    /// is passed over.
    pub hidden: &'a [&'a str],
}

/// Which users there are for the process afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// Those that there were before.
    Shared,
    /// Its own user and group alone.
    Own,
}

/// Enters namespaces together with a user namespace that maps the process's own user and group to themselves and nobody
/// else (user_namespaces(7)). The supplementary groups stay, but have no name in it.
///
/// # Errors
/// ENOSPC or EPERM where user namespaces are limited or forbidden; the error of a map that cannot be written.
pub fn unshare_with_own_user(namespaces: CloneFlags) -> io::Result<()> {
    // Before the change: what has no map yet is shown as the overflow id.
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    nix::sched::unshare(namespaces | CloneFlags::CLONE_NEWUSER)?;
    map_own_user(user, group)
}

/// Writes the maps of a user namespace that this process has just entered: its user and group of before, as themselves.
///
/// # Errors
/// EPERM if a map was written already, or if these are not the ids that it had.
pub fn map_own_user(user: u32, group: u32) -> io::Result<()> {
    // A group map of one's own making is taken only from who cannot drop groups any more (Linux 3.19).
    for (name, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        let mut file = std::fs::OpenOptions::new().write(true).open(format!("/proc/self/{name}"))?;
        io::Write::write_all(&mut file, text.as_bytes())?;
    }
    Ok(())
}

/// Moves the process into mount, network and IPC namespaces of its own, whose root is an empty read-only tmpfs with
/// only `binds` in it; the working directory becomes `/`.
///
/// Every mount is nosuid, nodev and noexec. Descriptors that are open already stay usable, so the caller closes what
/// it does not want to keep. Needs CAP_SYS_ADMIN and a single thread. With `Users::Own` the process enters a user
/// namespace of its own on the way, in which there is nobody but its present user and group: what privilege it had
/// reaches nothing outside any more.
///
/// # Errors
/// The error of the first kernel call that failed; the process must then end, as its root is in between.
pub fn private_root(binds: &[RootBind<'_>], users: Users) -> io::Result<()> {
    // Cloned before the namespace changes: open_tree(2) takes only mounts of the caller's own mount namespace.
    let mut trees = Vec::with_capacity(binds.len());
    for bind in binds {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = open_tree(bind.source, "", flags)?;
        let attr = MountAttr { read_only: bind.read_only, no_suid: true, no_dev: true, no_exec: true, private: true };
        set_mount_attributes(tree.as_fd(), attr, false)?;
        trees.push((tree, bind));
    }
    let namespaces = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC;
    match users {
        Users::Shared => nix::sched::unshare(namespaces)?,
        Users::Own => unshare_with_own_user(namespaces)?,
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;

    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "size", "64k")?;
    fsconfig_set_string(context.as_fd(), "nr_inodes", "64")?;
    fsconfig_set_string(context.as_fd(), "mode", "0755")?;
    fsconfig_create(context.as_fd())?;
    let attr = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let root = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attr)?;
    // Attached first: before Linux 6.15 nothing can be mounted onto a detached mount.
    move_mount(root.as_fd(), "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    for (tree, bind) in &trees {
        rustix::fs::mkdirat(root.as_fd(), bind.at, Mode::from_raw_mode(0o755))?;
        move_mount(tree.as_fd(), "", root.as_fd(), bind.at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        for name in bind.hidden {
            hide(root.as_fd(), &format!("{}/{name}", bind.at))?;
        }
    }
    set_mount_attributes(root.as_fd(), MountAttr { read_only: true, ..MountAttr::default() }, false)?;
    rustix::process::fchdir(root.as_fd())?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    Ok(())
}

/// Mounts nothing over a directory or a file: what is a mount point in a namespace cannot be renamed or removed in it.
fn hide(root: BorrowedFd<'_>, path: &str) -> io::Result<()> {
    const NOTHING: [&str; 2] = [".folder", ".file"];
    let stat = match rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let [folder, file] = NOTHING;
    let nothing = if FileType::from_raw_mode(stat.st_mode).is_dir() {
        rustix::fs::mkdirat(root, folder, Mode::empty())?;
        folder
    } else {
        drop(rustix::fs::openat(root, file, OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?);
        file
    };
    let cover = open_tree(root, nothing, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    let attr = MountAttr { read_only: true, no_suid: true, no_dev: true, no_exec: true, private: true };
    set_mount_attributes(cover.as_fd(), attr, false)?;
    move_mount(cover.as_fd(), "", root, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    // Once it is mounted it goes on without its name.
    let kind = if nothing == folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(rustix::fs::unlinkat(root, nothing, kind)?)
}
