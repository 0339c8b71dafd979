//! The signer's directory, by descriptor: every file is opened relative to it, without following links, and must belong
//! to this user alone.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::SignerError;

/// The private key, PKCS#8 in PEM, 0600.
pub const KEY_FILE: &str = "key.pem";
/// The public key, SPKI in PEM, 0644; for offline verification.
pub const PUBLIC_FILE: &str = "public.pem";

/// 0644.
const PUBLIC: Mode = Mode::from_bits_retain(0o644);

/// The signer's directory.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    /// Takes a directory that this user alone can use.
    pub(crate) fn new(directory: OwnedFd) -> Result<Self, SignerError> {
        let stat = rustix::fs::fstat(&directory).map_err(|errno| file(".", "examined", errno))?;
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        private(".", "a directory of this user with mode 0700", (stat.st_mode, stat.st_uid, is_directory))?;
        Ok(Self(directory))
    }

    /// Opens a file of this user alone; none if there is no such file.
    pub(crate) fn open(&self, name: &'static str, flags: OFlags) -> Result<Option<File>, SignerError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(file(name, "opened", errno)),
        };
        let stat = rustix::fs::fstat(&opened).map_err(|errno| file(name, "examined", errno))?;
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1;
        private(name, "a plain file of this user with mode 0600", (stat.st_mode, stat.st_uid, is_plain))?;
        Ok(Some(File::from(opened)))
    }

    /// Makes a new file, whole or not at all: written under another name, synced, then given its own.
    pub(crate) fn create(&self, name: &'static str, half: &'static str, content: &[u8]) -> Result<(), SignerError> {
        self.place((name, half), content, (Mode::RUSR | Mode::WUSR, RenameFlags::NOREPLACE))
    }

    /// The same for what everybody may read and what may be there already.
    pub(crate) fn publish(&self, name: &'static str, half: &'static str, content: &[u8]) -> Result<(), SignerError> {
        self.place((name, half), content, (PUBLIC, RenameFlags::empty()))
    }

    /// Whether that is there as [`Folder::publish`] would make it. What cannot be read is not.
    pub(crate) fn has_published(&self, name: &'static str, content: &[u8]) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let Ok(opened) = rustix::fs::openat(&self.0, name, flags, Mode::empty()) else { return false };
        let is_as_made = rustix::fs::fstat(&opened).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && Mode::from_raw_mode(stat.st_mode) == PUBLIC
                && stat.st_uid == rustix::process::geteuid().as_raw()
        });
        is_as_made && read_all(&mut File::from(opened), name, content.len()).is_ok_and(|there| there == content)
    }

    fn place(
        &self,
        (name, half): (&'static str, &'static str),
        content: &[u8],
        (mode, rename): (Mode, RenameFlags),
    ) -> Result<(), SignerError> {
        self.remove(half)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.0, half, flags, mode).map_err(|errno| file(half, "made", errno))?;
        // The umask is the starter's; the mode has to be what it says.
        rustix::fs::fchmod(&made, mode).map_err(|errno| file(half, "given its mode", errno))?;
        let mut made = File::from(made);
        made.write_all(content).and_then(|()| made.sync_all()).map_err(|source| SignerError::File {
            name: half,
            doing: "written",
            source,
        })?;
        rustix::fs::renameat_with(&self.0, half, &self.0, name, rename)
            .map_err(|errno| file(name, "put in its place", errno))?;
        self.sync()
    }

    /// Removes a file if it is there.
    pub(crate) fn remove(&self, name: &'static str) -> Result<(), SignerError> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(file(name, "removed", errno)),
        }
    }

    /// Makes names durable.
    pub(crate) fn sync(&self) -> Result<(), SignerError> {
        rustix::fs::fsync(&self.0).map_err(|errno| file(".", "synced", errno))
    }
}

/// Reads at most `most` bytes; more is an error, so that nothing is cut silently.
pub(crate) fn read_all(opened: &mut File, name: &'static str, most: usize) -> Result<Vec<u8>, SignerError> {
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    // Room for all of it at once: a buffer that grows would leave copies behind.
    let mut content = Vec::with_capacity(most.saturating_add(1));
    opened.take(limit).read_to_end(&mut content).map_err(|source| SignerError::File { name, doing: "read", source })?;
    if content.len() > most {
        return Err(SignerError::Length { got: content.len(), most });
    }
    Ok(content)
}

/// Refuses what others could use. `mode` and `uid` as in stat(2).
fn private(
    name: &'static str,
    expected: &'static str,
    (mode, uid, right_kind): (u32, u32, bool),
) -> Result<(), SignerError> {
    let me = rustix::process::geteuid().as_raw();
    let found = match (right_kind, uid == me, mode & 0o077) {
        (true, true, 0) => return Ok(()),
        (false, ..) => "of another kind, or has a second name".to_owned(),
        (true, false, _) => format!("owned by user {uid}, this one is {me}"),
        (true, true, _) => format!("of mode {:04o}", mode & 0o7777),
    };
    Err(SignerError::FileMode { name, expected, found })
}

fn file(name: &'static str, doing: &'static str, errno: Errno) -> SignerError {
    SignerError::File { name, doing, source: errno.into() }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;
    use crate::key::ReceiptKey;

    /// A directory as the signer is given it.
    pub(crate) fn private_directory() -> tempfile::TempDir {
        let private = std::fs::Permissions::from_mode(0o700);
        tempfile::Builder::new().permissions(private).tempdir().unwrap()
    }

    #[test]
    fn a_file_is_private_only_with_this_owner_and_no_bit_for_others() {
        let me = rustix::process::geteuid().as_raw();
        assert!(private("f", "private", (0o600, me, true)).is_ok());
        assert!(private("f", "private", (0o400, me, true)).is_ok());
        for (mode, uid, kind) in [
            (0o640, me, true),
            (0o604, me, true),
            (0o620, me, true),
            (0o601, me, true),
            (0o600, me.wrapping_add(1), true),
            (0o600, me, false),
        ] {
            assert!(private("f", "private", (mode, uid, kind)).is_err(), "{mode:o} {uid} {kind}");
        }
    }

    #[test]
    fn a_public_key_that_is_there_is_left_alone_so_that_a_full_disk_does_not_matter() {
        let directory = private_directory();
        let folder = Folder::new(OwnedFd::from(File::open(directory.path()).unwrap())).unwrap();
        let key = ReceiptKey::generate().unwrap();
        key.publish(&folder).unwrap();
        let path = directory.path().join(PUBLIC_FILE);
        let inode = || std::fs::symlink_metadata(&path).unwrap().ino();
        let first = inode();
        key.publish(&folder).unwrap();
        assert_eq!(inode(), first);
        let pem = std::fs::read(&path).unwrap();
        for spoil in [
            |path: &std::path::Path| std::fs::write(path, "another key").unwrap(),
            |path: &std::path::Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap(),
            |path: &std::path::Path| std::fs::remove_file(path).unwrap(),
        ] {
            spoil(&path);
            assert!(!folder.has_published(PUBLIC_FILE, &pem));
            key.publish(&folder).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), pem);
        }
    }
}
