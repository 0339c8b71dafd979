//! The state folder: opened once, locked, and given to the ids of this start.
//!
//! The folder belongs to whoever starts the daemon. Started by root its group is the daemon's, and it is sticky: the daemon can make its ledger in it but
//! can neither replace nor rename `signer/` or `instance`. Everything is done by descriptor. A link, or a file with a
//! second name, that an earlier daemon could have planted is refused and never given away.

use std::fs::{DirBuilder, File};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::error::{ServeError, call, file};
use super::holder::{Patience, lock_holder};
use super::trial_home;

const SIGNER: &str = "signer";
const INSTANCE: &str = "instance";
const LOCK: &str = "lock";
/// The mark of a state whose key signs for ablation mode and for nothing else. Made before the key.
const ABLATION: &str = "ablation";
/// Only without root.
const IDS: &str = "ids";
/// What the daemon finds ready made.
const DAEMON_FOLDERS: [&str; 2] = ["blobs", "images"];
/// Deepest nesting that any of our own folders has, with room.
const DEPTH_MAX: u32 = 8;

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Who state belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owners {
    /// The daemon.
    pub(super) daemon: Owner,
    /// The signer.
    pub(super) signer: Owner,
}

/// The state folder, locked as long as its descriptor lives.
#[derive(Debug)]
pub(super) struct State {
    /// The folder; also the lock.
    pub(super) folder: OwnedFd,
    /// Its path, without links.
    pub(super) path: PathBuf,
    /// Locked as well; for the signer, which must not have a way into the folder.
    pub(super) signer_lock: OwnedFd,
}

impl State {
    /// Opens the folder, makes it if need be, and locks it, waiting at most so long for whoever has it.
    pub(super) fn open(path: &Path, patience: Duration) -> Result<Self, ServeError> {
        let mut builder = DirBuilder::new();
        file("make", path, builder.recursive(true).mode(0o755).create(path.parent().unwrap_or(path)))?;
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return file("make", path, Err(error)),
            Ok(()) | Err(_) => {}
        }
        let folder = file("open", path, rustix::fs::open(path, FOLDER, Mode::empty()))?;
        must_be_starters(&folder, path)?;
        lock(&folder, path, patience)?;
        let path = file("resolve", path, path.canonicalize())?;
        must_be_ours(&folder, &path)?;
        let at = path.join(LOCK);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let signer_lock = rustix::fs::openat(&folder, LOCK, flags, Mode::from_raw_mode(0o600));
        let signer_lock = file("open", &at, signer_lock)?;
        lock(&signer_lock, &path, patience)?;
        Ok(Self { folder, path, signer_lock })
    }

    /// The name of the instance, made on the first start.
    pub(super) fn instance(&self) -> Result<String, ServeError> {
        let path = self.path.join(INSTANCE);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match rustix::fs::openat(&self.folder, INSTANCE, flags, Mode::empty()) {
            Ok(descriptor) => read_instance(descriptor, &path),
            Err(Errno::NOENT) => self.new_instance(&path),
            Err(errno) => file("open", path, Err(errno)),
        }
    }

    /// Whether the state is of this mode; a new one is marked for it. A key is never of both.
    pub(super) fn must_be_of(&self, is_ablation: bool) -> Result<(), ServeError> {
        let is_there = |name: &str| match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_stat) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => file("look at", self.path.join(name), Err(errno)),
        };
        let (is_marked, is_new) = (is_there(ABLATION)?, !is_there(INSTANCE)?);
        if is_marked {
            self.must_be_a_file_of_the_starters(ABLATION)?;
        }
        match (is_ablation, is_marked) {
            (true, true) | (false, false) => Ok(()),
            (true, false) if is_new => self.replace(ABLATION, &self.path.join(ABLATION), "controls may be off here\n"),
            (true, false) => Err(refuse(
                &self.path,
                "holds the key and the receipts of an instance whose controls cannot be switched off",
                "name a folder of its own for ablation mode with --state",
            )),
            (false, true) => Err(refuse(
                &self.path,
                "holds the key and the receipts of ablation mode",
                "name another folder with --state, or start with --ablation",
            )),
        }
    }

    /// The daemon can make files here, too: its word about the mode is none.
    fn must_be_a_file_of_the_starters(&self, name: &str) -> Result<(), ServeError> {
        let path = self.path.join(name);
        let stat = file("look at", &path, rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW))?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_file && stat.st_uid == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let why = "is not a file of the user who starts the daemon, and says that this is a state of ablation mode";
        Err(refuse(&path, why, "look who made it, and remove it if it was not you"))
    }

    fn new_instance(&self, path: &Path) -> Result<String, ServeError> {
        let mut random = [0_u8; 4];
        call("getrandom", getrandom::fill(&mut random).map_err(std::io::Error::other))?;
        let name = format!("{:08x}", u32::from_be_bytes(random));
        self.replace(INSTANCE, path, &name)?;
        Ok(name)
    }

    /// Writes a file of ours as a whole, durably.
    fn replace(&self, name: &str, path: &Path, text: &str) -> Result<(), ServeError> {
        let fresh = format!("{name}.new");
        match rustix::fs::unlinkat(&self.folder, &fresh, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return file("remove", self.path.join(&fresh), Err(errno)),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.folder, &fresh, flags, Mode::from_raw_mode(0o600));
        let mut new = File::from(file("make", path, made)?);
        file("write", path, new.write_all(text.as_bytes()).and_then(|()| new.sync_all()))?;
        file("write", path, rustix::fs::renameat(&self.folder, &fresh, &self.folder, name))?;
        file("write", path, rustix::fs::fsync(&self.folder))
    }

    /// First of the host ids that cells of an earlier life without root had; none if they had none of their own.
    pub(super) fn former_ids(&self) -> Result<Option<u32>, ServeError> {
        let path = self.path.join(IDS);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let descriptor = match rustix::fs::openat(&self.folder, IDS, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            other => file("open", &path, other)?,
        };
        let mut text = String::new();
        file("read", &path, File::from(descriptor).take(64).read_to_string(&mut text))?;
        Ok(text.trim().parse().ok())
    }

    /// Keeps what [`State::former_ids`] is to tell the next life.
    pub(super) fn remember_ids(&self, first: Option<u32>) -> Result<(), ServeError> {
        let text = first.map_or_else(|| "own".to_owned(), |first| first.to_string());
        self.replace(IDS, &self.path.join(IDS), &text)
    }

    /// Makes the folders and gives all that is inside to the ids of this start.
    pub(super) fn hand_over(&self, owners: Owners) -> Result<(), ServeError> {
        for name in DAEMON_FOLDERS.into_iter().chain([SIGNER]) {
            match rustix::fs::mkdirat(&self.folder, name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return file("make", self.path.join(name), Err(errno)),
            }
        }
        for name in entries(self.folder.as_fd(), &self.path)? {
            let owner = match name.as_str() {
                INSTANCE | IDS | LOCK | ABLATION | "lost+found" => continue,
                // Of a doctor that looks at this very moment, on a file system that is the state's alone.
                name if trial_home::is_one(name) => continue,
                SIGNER => owners.signer,
                _ => owners.daemon,
            };
            give(self.folder.as_fd(), &name, &self.path.join(&name), owner, DEPTH_MAX)?;
        }
        let (user, group) = (rustix::process::geteuid(), Gid::from_raw(owners.daemon.gid));
        file("give", &self.path, rustix::fs::fchown(&self.folder, Some(user), Some(group)))?;
        // After the change of owner, which may clear mode bits (chown(2)).
        file("give", &self.path, rustix::fs::fchmod(&self.folder, Mode::from_raw_mode(0o1770)))
    }

    /// The folder by another descriptor, which does not hold the lock. By its path, as this process may be in another
    /// mount namespace by now, whose mount it must be for the part that binds it.
    pub(super) fn again(&self) -> Result<OwnedFd, ServeError> {
        let folder = file("open", &self.path, rustix::fs::open(&self.path, FOLDER, Mode::empty()))?;
        let identity = |folder: &OwnedFd| {
            let stat = file("look at", &self.path, rustix::fs::fstat(folder))?;
            Ok((stat.st_dev, stat.st_ino))
        };
        if identity(&folder)? != identity(&self.folder)? {
            return Err(refuse(&self.path, "is not the folder any more that was locked", "look who replaced it"));
        }
        Ok(folder)
    }

    /// The signer's folder.
    pub(super) fn signer_folder(&self) -> Result<OwnedFd, ServeError> {
        file("open", self.path.join(SIGNER), rustix::fs::openat(self.again()?, SIGNER, FOLDER, Mode::empty()))
    }
}

/// Looks at a state folder as [`State::open`] will, if it is there, and changes nothing. Who has it locked is told
/// elsewhere.
pub(super) fn look(path: &Path) -> Result<(), ServeError> {
    let folder = match rustix::fs::open(path, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        other => file("open", path, other)?,
    };
    must_be_starters(&folder, path)?;
    must_be_ours(&folder, path)
}

fn must_be_starters(folder: &OwnedFd, path: &Path) -> Result<(), ServeError> {
    let stat = file("look at", path, rustix::fs::fstat(folder))?;
    if stat.st_uid == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let why = "does not belong to the user who starts the daemon";
    Err(refuse(path, why, "chown it to that user, or name another with --state"))
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Another folder, given by mistake, must not change hands.
fn must_be_ours(folder: &OwnedFd, path: &Path) -> Result<(), ServeError> {
    const FIRST: [&str; 7] = ["instance.new", "ids", "ids.new", ABLATION, "ablation.new", LOCK, "lost+found"];
    let names = entries(folder.as_fd(), path)?;
    let is_made_first = |name: &String| FIRST.contains(&name.as_str()) || trial_home::is_one(name);
    if names.iter().any(|name| name == INSTANCE) || names.iter().all(is_made_first) {
        return Ok(());
    }
    Err(refuse(path, "holds other files and no toolcell state", "name an empty folder with --state"))
}

fn refuse(path: &Path, why: &'static str, remedy: &'static str) -> ServeError {
    ServeError::Unsafe { path: path.to_owned(), why, remedy }
}

fn lock(folder: &OwnedFd, path: &Path, patience: Duration) -> Result<(), ServeError> {
    let mut patience = Patience::begin(patience);
    loop {
        match rustix::fs::flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => patience.wait(path, lock_holder(path))?,
            Err(errno) => return file("lock", path, Err(errno)),
        }
    }
}

fn read_instance(descriptor: OwnedFd, path: &Path) -> Result<String, ServeError> {
    let damaged = |why| refuse(path, why, "restore it: it names the instance and its cgroups, 8 lower-case hex digits");
    let stat = file("look at", path, rustix::fs::fstat(&descriptor))?;
    if stat.st_uid != rustix::process::geteuid().as_raw()
        || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
    {
        return Err(damaged("is not a file of the user who starts the daemon"));
    }
    let mut name = String::new();
    file("read", path, File::from(descriptor).take(64).read_to_string(&mut name))?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if name.len() != 8 || !name.bytes().all(is_hex) {
        return Err(damaged("does not hold a name"));
    }
    Ok(name)
}

fn entries(folder: BorrowedFd<'_>, path: &Path) -> Result<Vec<String>, ServeError> {
    let mut names = Vec::new();
    for entry in file("list", path, Dir::read_from(folder))? {
        let entry = file("list", path, entry)?;
        match entry.file_name().to_str() {
            Ok("." | "..") => {}
            Ok(name) => names.push(name.to_owned()),
            Err(_no_text) => return Err(refuse(path, "holds a name that is not UTF-8", "remove that file")),
        }
    }
    Ok(names)
}

/// Gives one entry, and all below it, to `owner`. Only folders and plain files with one name.
fn give(parent: BorrowedFd<'_>, name: &str, path: &Path, owner: Owner, depth: u32) -> Result<(), ServeError> {
    let foreign = |why| refuse(path, why, "look who made it, and remove it");
    // O_PATH opens nothing that could block or have effects (open(2)); all that follows is about this very inode.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entry = file("open", path, rustix::fs::openat(parent, name, flags, Mode::empty()))?;
    let stat = file("look at", path, rustix::fs::fstat(&entry))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink == 1 => own(&entry, &stat, path, owner),
        FileType::RegularFile => Err(foreign("has more than one name")),
        FileType::Directory if depth == 0 => Err(foreign("is nested too deep")),
        FileType::Directory => {
            own(&entry, &stat, path, owner)?;
            let folder = file("open", path, rustix::fs::openat(&entry, ".", FOLDER, Mode::empty()))?;
            for below in entries(folder.as_fd(), path)? {
                give(folder.as_fd(), &below, &path.join(&below), owner, depth - 1)?;
            }
            Ok(())
        }
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(foreign("is neither a file nor a folder")),
    }
}

fn own(entry: &OwnedFd, stat: &Stat, path: &Path, owner: Owner) -> Result<(), ServeError> {
    if stat.st_uid == owner.uid && stat.st_gid == owner.gid {
        return Ok(());
    }
    let (user, group) = (Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)));
    file("give", path, rustix::fs::chownat(entry, "", user, group, AtFlags::EMPTY_PATH))
}

#[cfg(test)]
mod tests;
