//! Host paths that go into a cell: opened under the right ids, checked, and cloned as detached read-only trees.
//!
//! A privileged launcher must not be a confused deputy: a caller's mount is opened under the caller's own ids and
//! groups, a path of an image under ids that own nothing, so that each gets only what it could have read itself. A
//! launcher that is an ordinary user's opens both as that user, with its capabilities put down. A path that is, lies
//! under or contains the instance's own directories or a kernel file system is refused.

mod denied;
mod error;
mod submounts;

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use nix::fcntl::AtFlags;
use nix::unistd::{AccessFlags, Gid, Uid, setfsgid, setfsuid, setgroups};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::OpenTreeFlags;
use toolcell_sys::{MountAttr, set_mount_attributes};
use toolcell_types::plan::{CallerIds, PlanMount};

pub(crate) use self::denied::Denied;
use self::denied::refuse_kernel_fs;
pub(crate) use self::error::HostPathError;
use self::error::{Result, call};
use self::submounts::refuse_submounts;
use crate::idmap;
use crate::ids::{Id, Ids, own_id};

/// A host path as a tree of its own, to be attached inside.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) tree: OwnedFd,
    pub(crate) is_dir: bool,
}

/// As whom host paths are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deputy {
    /// A launcher that is root: under the ids of whoever asks.
    AnyUser,
    /// A launcher that is an ordinary user's: as that user, and for nobody else.
    OwnUser,
}

/// A path of the host that an image shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImagePath<'p> {
    /// Which.
    pub(crate) host: &'p str,
    /// Whether it may be absent.
    pub(crate) optional: bool,
    /// Whether a link is shown as a link.
    pub(crate) keeps_link: bool,
}

/// What is at a path of an image.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing, which is allowed.
    Nothing,
    /// A link, and where to.
    Link(String),
    /// A directory or a file.
    Tree(Tree),
}

/// What kept an image from being opened, and at which of its paths.
pub(crate) type ImageError<'p> = (&'p str, HostPathError);

/// [`Found`], before it is cloned.
#[derive(Debug)]
enum Seen {
    Nothing,
    Link(String),
    File(Opened),
}

impl ImagePath<'_> {
    fn look(&self, uid: u32) -> Result<Seen> {
        if self.keeps_link {
            match rustix::fs::readlink(self.host, Vec::new()) {
                Ok(target) => return Ok(Seen::Link(target.to_string_lossy().into_owned())),
                // No link (readlink(2)).
                Err(rustix::io::Errno::INVAL) => {}
                Err(rustix::io::Errno::NOENT) if self.optional => return Ok(Seen::Nothing),
                Err(errno) => return Err(HostPathError::Call { action: "look at", source: errno.into() }),
            }
        }
        match open_readable(self.host, uid) {
            Ok(opened) => Ok(Seen::File(opened)),
            Err(error) if self.optional && error.is_absent() => Ok(Seen::Nothing),
            Err(error) => Err(error),
        }
    }
}

/// The host's paths for one cell.
#[derive(Debug)]
pub(crate) struct HostPaths {
    deputy: Deputy,
    ids: Ids,
    /// Whose end is this process's, too. A change of file-system ids clears the signal that says so (prctl(2)).
    tied_to: Option<rustix::process::Pid>,
    /// Says that the caller's files are the tool's; made when the first mount needs it.
    users: OnceCell<OwnedFd>,
}

impl HostPaths {
    /// For the eyes of the tool of these ids.
    pub(crate) fn new(deputy: Deputy, ids: Ids) -> Self {
        Self { deputy, ids, tied_to: None, users: OnceCell::new() }
    }

    /// For a process that must not outlive its parent, whatever keeps it.
    pub(crate) fn tied_to(self, parent: Option<rustix::process::Pid>) -> Self {
        Self { tied_to: parent, ..self }
    }

    fn stay_tied(&self) -> Result<()> {
        let Some(parent) = self.tied_to else { return Ok(()) };
        let untied =
            |source: io::Error| HostPathError::Call { action: "stay tied to the launcher while opening", source };
        toolcell_sys::parent_death_signal().map_err(|error| untied(io::Error::other(error)))?;
        // It may have ended before.
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(untied(io::ErrorKind::NotFound.into())) }
    }

    /// Opens what a caller names, as the caller, as a read-only tree that the tool can read.
    pub(crate) fn open_for_caller(&self, mount: &PlanMount<'_>, caller: &CallerIds, denied: &Denied) -> Result<Tree> {
        let own = own_id().uid;
        let opened = match self.deputy {
            Deputy::AnyUser => {
                let opened = as_ids(caller, || self.stay_tied().and_then(|()| open_readable(mount.host, caller.uid)));
                self.stay_tied()?;
                opened?
            }
            Deputy::OwnUser if caller.uid == own => as_own_user(|| open_readable(mount.host, own))?,
            Deputy::OwnUser => return Err(HostPathError::Foreign { uid: caller.uid, own }),
        };
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&opened.file);
        let real = call("name", std::fs::read_link(format!("/proc/self/fd/{descriptor}")))?;
        refuse_kernel_fs(opened.file.as_fd())?;
        denied.check(&real)?;
        // The daemon compared the texts; only here is known where a link leads. The folder itself must not be a link, nor
        // be reached through one: who owns its parent could put another folder in its place.
        let folder = call("resolve the policy's folder for", Path::new(mount.within).canonicalize())?;
        if folder != Path::new(mount.within) || !real.starts_with(&folder) {
            return Err(HostPathError::Outside { real, within: mount.within.to_owned() });
        }
        refuse_submounts(&real)?;
        let tree = clone_tree(&opened, Depth::One)?;
        if !self.show_own_files(&tree, &opened, caller)? && !self.ids.is_own && !opened.is_readable(Whose::Others) {
            return Err(HostPathError::Private { mode: opened.mode & 0o777 });
        }
        Ok(tree)
    }

    /// Opens what an image names, under ids that own nothing; without root as the launcher's user. One change of ids is
    /// enough for all of it. An error comes with the path that it is about.
    pub(crate) fn open_for_image<'p>(
        &self,
        wanted: &[ImagePath<'p>],
    ) -> std::result::Result<Vec<Found>, ImageError<'p>> {
        let Id { uid, gid } = self.ids.tool;
        let look =
            || Ok(wanted.iter().map(|path| path.look(uid).map_err(|error| (path.host, error))).collect::<Vec<_>>());
        let seen = match self.deputy {
            Deputy::AnyUser => as_ids(&CallerIds { uid, gid, groups: Vec::new() }, look),
            Deputy::OwnUser => as_own_user(look),
        };
        let first = wanted.first().map_or("", |path| path.host);
        let seen = seen.map_err(|error| (first, error))?;
        let found = seen.into_iter().zip(wanted).map(|(seen, path)| match seen? {
            Seen::Nothing => Ok(Found::Nothing),
            Seen::Link(target) => Ok(Found::Link(target)),
            Seen::File(opened) => {
                let tree = refuse_kernel_fs(opened.file.as_fd()).and_then(|()| clone_tree(&opened, Depth::All));
                tree.map(Found::Tree).map_err(|error| (path.host, error))
            }
        });
        found.collect()
    }

    /// A caller's own files become readable for the tool where the file system knows how. Root's never do: a daemon
    /// that was taken over can say that root asks, and could so have read what root alone may read.
    fn show_own_files(&self, tree: &Tree, opened: &Opened, caller: &CallerIds) -> Result<bool> {
        const ROOT: u32 = 0;
        let is_callers = opened.owner == caller.uid && opened.is_readable(Whose::Owner);
        if self.deputy == Deputy::OwnUser || caller.uid == ROOT || !is_callers {
            return Ok(false);
        }
        let users = match self.users.get() {
            Some(users) => users,
            None => {
                let caller = Id { uid: caller.uid, gid: caller.gid };
                let made = call("make an id map for", idmap::caller_as_tool(caller, self.ids.tool))?;
                self.users.get_or_init(|| made)
            }
        };
        // EINVAL: a file system without that ability; EPERM: one of somebody else's user namespace.
        match toolcell_sys::map_mount_ids(tree.tree.as_fd(), users.as_fd()) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.raw_os_error(), Some(nix::libc::EINVAL | nix::libc::EPERM)) => Ok(false),
            Err(source) => Err(HostPathError::Call { action: "map the owner of", source }),
        }
    }
}

/// A path that was opened.
#[derive(Debug)]
struct Opened {
    file: OwnedFd,
    is_dir: bool,
    owner: u32,
    mode: u32,
}

/// Which bits of a mode count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Owner,
    Others,
}

impl Opened {
    /// Whether the mode lets them read it: inside, a tool is the owner of what is mapped to it, and nobody else's else.
    fn is_readable(&self, whose: Whose) -> bool {
        let wanted = if self.is_dir { 0o5 } else { 0o4 };
        let shift = if whose == Whose::Owner { 6 } else { 0 };
        (self.mode >> shift) & wanted == wanted
    }
}

/// Runs `open` with these file-system ids (setfsuid(2): a change from 0 also takes the capabilities that override
/// file modes out of the effective set) and gives the launcher's own back, whatever happened.
fn as_ids<T>(ids: &CallerIds, open: impl FnOnce() -> Result<T>) -> Result<T> {
    let failed = |source: io::Error| HostPathError::Ids { uid: ids.uid, source };
    // Not nix's, which reads a limit from /proc each time.
    let own_groups = rustix::process::getgroups().map_err(|errno| failed(errno.into()))?;
    let own_groups: Vec<Gid> = own_groups.into_iter().map(|group| Gid::from_raw(group.as_raw())).collect();
    let groups: Vec<Gid> = ids.groups.iter().copied().map(Gid::from_raw).collect();
    let (own_uid, own_gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    setgroups(&groups).map_err(|errno| failed(errno.into()))?;
    let _before = setfsgid(Gid::from_raw(ids.gid));
    let _before = setfsuid(Uid::from_raw(ids.uid));
    // A second call answers what is in force (setfsuid(2) reports no error).
    let taken =
        setfsuid(Uid::from_raw(ids.uid)).as_raw() == ids.uid && setfsgid(Gid::from_raw(ids.gid)).as_raw() == ids.gid;
    let result = if taken { open() } else { Err(failed(io::ErrorKind::PermissionDenied.into())) };
    let _before = setfsuid(own_uid);
    let _before = setfsgid(own_gid);
    setgroups(&own_groups).map_err(|errno| failed(errno.into()))?;
    if setfsuid(own_uid) != own_uid || setfsgid(own_gid) != own_gid {
        return Err(failed(io::ErrorKind::PermissionDenied.into()));
    }
    result
}

/// As the launcher's user without any capability: the launcher has them over that user's and over subordinate ids.
fn as_own_user<T>(open: impl FnOnce() -> Result<T>) -> Result<T> {
    toolcell_sys::without_capabilities(open)
        .map_err(|error| HostPathError::Ids { uid: own_id().uid, source: io::Error::other(error) })?
}

/// Opens without side effects (O_PATH), then asks whether these ids may read it.
fn open_readable(path: &str, uid: u32) -> Result<Opened> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
        .map_err(|errno| HostPathError::Open { uid, source: errno.into() })?;
    let stat = call("look at", rustix::fs::fstat(&file))?;
    let (is_dir, wanted) = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => (true, AccessFlags::R_OK | AccessFlags::X_OK),
        FileType::RegularFile => (false, AccessFlags::R_OK),
        FileType::Symlink => return Err(HostPathError::Kind { kind: "symbolic link" }),
        FileType::Fifo => return Err(HostPathError::Kind { kind: "fifo" }),
        FileType::Socket => return Err(HostPathError::Kind { kind: "socket" }),
        FileType::CharacterDevice | FileType::BlockDevice => return Err(HostPathError::Kind { kind: "device" }),
        FileType::Unknown => return Err(HostPathError::Kind { kind: "file of unknown type" }),
    };
    // AT_EACCESS: by the effective and file-system ids, not the real ones (faccessat2(2), Linux 5.8).
    nix::unistd::faccessat(&file, "", wanted, AtFlags::AT_EMPTY_PATH | AtFlags::AT_EACCESS)
        .map_err(|errno| HostPathError::Unreadable { uid, source: errno.into() })?;
    Ok(Opened { file, is_dir, owner: stat.st_uid, mode: stat.st_mode })
}

/// Whether file systems mounted below come along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Only the one; there are no others, as was checked.
    One,
    /// All: an image is what the machine shows there.
    All,
}

fn clone_tree(opened: &Opened, depth: Depth) -> Result<Tree> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    if depth == Depth::All {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    let tree = call("clone", rustix::mount::open_tree(opened.file.as_fd(), "", flags))?;
    let attr = MountAttr { read_only: true, no_suid: true, no_dev: true, no_exec: false, private: true };
    call("make read-only", set_mount_attributes(tree.as_fd(), attr, depth == Depth::All))?;
    Ok(Tree { tree, is_dir: opened.is_dir })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_and_regular_files_can_be_opened() {
        let uid = rustix::process::geteuid().as_raw();
        assert!(open_readable("/usr", uid).unwrap().is_dir);
        assert!(!open_readable("/etc/passwd", uid).unwrap().is_dir);
        assert!(matches!(open_readable("/dev/null", uid), Err(HostPathError::Kind { kind: "device" })));
        assert!(open_readable("/nonexistent", uid).unwrap_err().is_absent());
    }
}
