//! Host paths that go into a cell: opened under the right ids, checked, and cloned as detached read-only trees.
//!
//! A privileged launcher must not be a confused deputy: a caller's mount is opened under the caller's own ids and
//! groups, a path of an image under ids that own nothing, so that each gets only what it could have read itself. A
//! path that is, lies under or contains the instance's own directories or a kernel file system is refused.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::AtFlags;
use nix::unistd::{AccessFlags, Gid, Uid, setfsgid, setfsuid, setgroups};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::OpenTreeFlags;
use toolcell_sys::{MountAttr, set_mount_attributes};
use toolcell_types::plan::{CallerIds, PlanMount};

/// Why a host path does not go into a cell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostPathError {
    /// The ids could not be taken or given back.
    #[error("cannot open host paths under uid {uid}")]
    Ids {
        /// Whose.
        uid: u32,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// It cannot be opened under these ids.
    #[error("cannot open it as uid {uid}")]
    Open {
        /// Whose ids.
        uid: u32,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// It can be named but not read under these ids.
    #[error("uid {uid} may not read it")]
    Unreadable {
        /// Whose ids.
        uid: u32,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Neither a directory nor a regular file.
    #[error("it is a {kind}, expected a directory or a regular file")]
    Kind {
        /// What it is.
        kind: &'static str,
    },
    /// It is on a file system of the kernel's own, or is one of /proc, /sys, /dev.
    #[error("it is part of a kernel file system")]
    KernelFs,
    /// It is, lies under or contains a directory of the runner's own.
    #[error("it is, lies under or contains a directory of toolcell's own")]
    OwnDirectory,
    /// It leads out of what the policy allows.
    #[error("it leads to {real}, which is not in {within}, the folder that the policy allows")]
    Outside {
        /// Where it leads.
        real: PathBuf,
        /// The folder.
        within: String,
    },
    /// Another file system is mounted below it.
    #[error("another file system is mounted at {point}, below it: mount that by itself")]
    Submount {
        /// Where.
        point: PathBuf,
    },
    /// A call on the opened path failed.
    #[error("cannot {action} it")]
    Call {
        /// What was tried.
        action: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}

impl HostPathError {
    /// The errno behind it; EPERM where it is our own refusal.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Self::Ids { source, .. }
            | Self::Open { source, .. }
            | Self::Unreadable { source, .. }
            | Self::Call { source, .. } => source.raw_os_error().unwrap_or(nix::libc::EIO),
            Self::Kind { .. } | Self::KernelFs | Self::OwnDirectory | Self::Outside { .. } | Self::Submount { .. } => {
                nix::libc::EPERM
            }
        }
    }

    /// Whether the path is simply not there.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

type Result<T> = std::result::Result<T, HostPathError>;

fn call<T, E: Into<io::Error>>(action: &'static str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|source| HostPathError::Call { action, source: source.into() })
}

/// A host path as a tree of its own, to be attached inside.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) tree: OwnedFd,
    pub(crate) is_dir: bool,
}

/// What must never be shown inside.
#[derive(Debug)]
pub(crate) struct Denied {
    /// The directories themselves: being one of them or below one is refused.
    own: BTreeSet<(u64, u64)>,
    /// All directories above them: containing one is refused.
    above: BTreeSet<(u64, u64)>,
}

impl Denied {
    /// By device and inode, so that another name for the same directory does not help.
    pub(crate) fn new(paths: &[PathBuf]) -> io::Result<Self> {
        let (mut own, mut above) = (BTreeSet::new(), BTreeSet::new());
        for path in paths {
            let real = path.canonicalize()?;
            let _new = own.insert(identity(&real)?);
            for parent in real.ancestors().skip(1) {
                let _new = above.insert(identity(parent)?);
            }
        }
        Ok(Self { own, above })
    }

    fn check(&self, real: &Path) -> Result<()> {
        if ["/proc", "/sys", "/dev"].iter().any(|kernel| real.starts_with(kernel)) {
            return Err(HostPathError::KernelFs);
        }
        if self.above.contains(&call("look at", identity(real))?) {
            return Err(HostPathError::OwnDirectory);
        }
        for part in real.ancestors() {
            if self.own.contains(&call("look above", identity(part))?) {
                return Err(HostPathError::OwnDirectory);
            }
        }
        Ok(())
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::stat(path)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Opens what a caller names, under the caller's ids, as a read-only tree.
pub(crate) fn open_for_caller(mount: &PlanMount<'_>, caller: &CallerIds, denied: &Denied) -> Result<Tree> {
    let opened = as_ids(caller, || open_readable(mount.host, caller.uid))?;
    let real =
        call("name", std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&opened.0))))?;
    refuse_kernel_fs(opened.0.as_fd())?;
    denied.check(&real)?;
    // The daemon compared the texts; only here is known where a link leads. The folder itself must not be a link, nor
    // be reached through one: who owns its parent could put another folder in its place.
    let folder = call("resolve the policy's folder for", Path::new(mount.within).canonicalize())?;
    if folder != Path::new(mount.within) || !real.starts_with(&folder) {
        return Err(HostPathError::Outside { real, within: mount.within.to_owned() });
    }
    refuse_submounts(&real)?;
    clone_tree(opened.0.as_fd(), (opened.1, Depth::One))
}

/// Opens what an image names, under ids that own nothing.
pub(crate) fn open_for_image(path: &str, nobody: u32) -> Result<Tree> {
    let ids = CallerIds { uid: nobody, gid: nobody, groups: Vec::new() };
    let opened = as_ids(&ids, || open_readable(path, nobody))?;
    refuse_kernel_fs(opened.0.as_fd())?;
    clone_tree(opened.0.as_fd(), (opened.1, Depth::All))
}

/// Runs `open` with these file-system ids (setfsuid(2): a change from 0 also takes the capabilities that override
/// file modes out of the effective set) and gives the launcher's own back, whatever happened.
fn as_ids<T>(ids: &CallerIds, open: impl FnOnce() -> Result<T>) -> Result<T> {
    let failed = |source: io::Error| HostPathError::Ids { uid: ids.uid, source };
    let own_groups = nix::unistd::getgroups().map_err(|errno| failed(errno.into()))?;
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
    result
}

/// Opens without side effects (O_PATH), then asks whether these ids may read it.
fn open_readable(path: &str, uid: u32) -> Result<(OwnedFd, bool)> {
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
    Ok((file, is_dir))
}

/// File systems in which the kernel shows itself (statfs(2)).
fn refuse_kernel_fs(file: BorrowedFd<'_>) -> Result<()> {
    const PROC: i64 = 0x9fa0;
    const SYSFS: i64 = 0x6265_6572;
    const CGROUP: i64 = 0x0027_e0eb;
    const CGROUP2: i64 = 0x6367_7270;
    const DEBUGFS: i64 = 0x6462_6720;
    const TRACEFS: i64 = 0x7472_6163;
    const SECURITYFS: i64 = 0x7363_6673;
    const BPF: i64 = 0xcafe_4a11;
    const DEVPTS: i64 = 0x1cd1;
    const PSTORE: i64 = 0x6165_676c;
    const KERNEL: [i64; 10] = [PROC, SYSFS, CGROUP, CGROUP2, DEBUGFS, TRACEFS, SECURITYFS, BPF, DEVPTS, PSTORE];
    let magic = call("ask for the file system of", rustix::fs::fstatfs(file))?.f_type;
    if KERNEL.contains(&magic) { Err(HostPathError::KernelFs) } else { Ok(()) }
}

/// Whether file systems mounted below come along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Only the one; there are no others, as was checked.
    One,
    /// All: an image is what the machine shows there.
    All,
}

fn clone_tree(file: BorrowedFd<'_>, (is_dir, depth): (bool, Depth)) -> Result<Tree> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    if depth == Depth::All {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    let tree = call("clone", rustix::mount::open_tree(file, "", flags))?;
    let attr = MountAttr { read_only: true, no_suid: true, no_dev: true, no_exec: false, private: true };
    call("make read-only", set_mount_attributes(tree.as_fd(), attr, depth == Depth::All))?;
    Ok(Tree { tree, is_dir })
}

/// What another file system covers could be read by who may not reach it otherwise, if only the covered one came along;
/// and a cell that is shown less than its caller sees would give wrong results.
fn refuse_submounts(real: &Path) -> Result<()> {
    let mounts = call("look for mounts below", std::fs::read("/proc/self/mountinfo"))?;
    for line in mounts.split(|byte| *byte == b'\n') {
        let Some(point) = line.split(|byte| *byte == b' ').nth(4).map(unescape) else { continue };
        let point = PathBuf::from(std::ffi::OsString::from_vec(point));
        if point != real && point.starts_with(real) {
            return Err(HostPathError::Submount { point });
        }
    }
    Ok(())
}

/// Octal escapes of blanks, tabs, line ends and backslashes in mountinfo (proc(5)).
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

/// The link at `path`, if it is one; `Ok(None)` if it is a directory, or absent. Looked at under ids that own nothing.
pub(crate) fn link_target(path: &str, nobody: u32) -> Result<Option<String>> {
    let ids = CallerIds { uid: nobody, gid: nobody, groups: Vec::new() };
    as_ids(&ids, || link_at(path))
}

fn link_at(path: &str) -> Result<Option<String>> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => {
            let target = call("read the link at", std::fs::read_link(path))?;
            Ok(Some(target.to_string_lossy().into_owned()))
        }
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(HostPathError::Call { action: "look at", source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_directories_their_insides_and_their_parents_are_refused_and_siblings_are_not() {
        let base = std::env::temp_dir().join(format!("toolcell-denied-{}", std::process::id()));
        let (own, below, sibling) = (base.join("own"), base.join("own/below"), base.join("sibling"));
        for dir in [&own, &below, &sibling] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let denied = Denied::new(std::slice::from_ref(&own)).unwrap();
        assert!(matches!(denied.check(&own), Err(HostPathError::OwnDirectory)));
        assert!(matches!(denied.check(&below), Err(HostPathError::OwnDirectory)));
        assert!(matches!(denied.check(&base), Err(HostPathError::OwnDirectory)));
        assert!(matches!(denied.check(Path::new("/")), Err(HostPathError::OwnDirectory)));
        assert!(matches!(denied.check(Path::new("/proc/self")), Err(HostPathError::KernelFs)));
        assert!(denied.check(&sibling).is_ok());
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn mount_points_are_read_with_their_escapes() {
        assert_eq!(unescape(br"/a\040b\134c"), br"/a b\c");
        assert_eq!(unescape(br"/plain\9"), br"/plain\9");
        assert!(matches!(refuse_submounts(Path::new("/")), Err(HostPathError::Submount { .. })));
        assert!(refuse_submounts(Path::new("/usr/bin")).is_ok());
    }

    #[test]
    fn only_directories_and_regular_files_can_be_opened() {
        let uid = rustix::process::geteuid().as_raw();
        assert!(open_readable("/usr", uid).unwrap().1);
        assert!(!open_readable("/etc/passwd", uid).unwrap().1);
        assert!(matches!(open_readable("/dev/null", uid), Err(HostPathError::Kind { kind: "device" })));
        assert!(open_readable("/nonexistent", uid).unwrap_err().is_absent());
    }
}
