//! Kept output, one file per content, named by its SHA-256: durable before the signer is asked to sign an outcome that
//! names it.
//!
//! Guarantees: what [`Blobs::read`] returns has the digest that was asked for. Does not: delete anything, or store the
//! empty content, which every instance has.

use std::fs::{DirEntry, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::Sha256;

/// Why a blob cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The file or its directory could not be used.
    #[error("{path} could not be used")]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// It is longer than it may be.
    #[error("blob {digest} is longer than {most} bytes")]
    TooLong {
        /// Which.
        digest: Sha256,
        /// The most that was asked for.
        most: u64,
    },
    /// The file was changed.
    #[error("blob {digest} has the digest {got}")]
    Changed {
        /// Which.
        digest: Sha256,
        /// What it has now.
        got: Sha256,
    },
}

/// The directory of the blobs.
#[derive(Debug)]
pub struct Blobs {
    directory: PathBuf,
    next: AtomicU64,
}

impl Blobs {
    /// Blobs in an existing directory. What an earlier process left half written is removed.
    ///
    /// # Errors
    /// [`BlobError::File`] if the directory cannot be read.
    pub fn open(directory: &Path) -> Result<Self, BlobError> {
        let blobs = Self { directory: directory.to_owned(), next: AtomicU64::new(0) };
        for item in std::fs::read_dir(directory).map_err(|source| file(directory, source))? {
            let item = item.map_err(|source| file(directory, source))?;
            if item.file_name().to_string_lossy().starts_with(HALF_WRITTEN)
                && let Err(error) = remove(&item)
            {
                // It is in nobody's way: a name that is taken is left out.
                tracing::warn!(path = %item.path().display(), %error, "a leftover could not be removed");
            }
        }
        Ok(blobs)
    }

    /// Stores bytes durably and names them. Storing the same bytes again costs a look at the file.
    ///
    /// # Errors
    /// [`BlobError::File`]; then sign nothing that names them.
    pub fn put(&self, bytes: &[u8]) -> Result<Sha256, BlobError> {
        let digest = Sha256(Hasher::digest(bytes).into());
        if bytes.is_empty() || self.holds(&digest, bytes) {
            return Ok(digest);
        }
        let path = self.path(&digest);
        let half = self.write_durably(bytes)?;
        std::fs::rename(&half, &path).map_err(|source| file(&path, source))?;
        self.sync().map_err(|source| file(&self.directory, source))?;
        Ok(digest)
    }

    /// Reads bytes back, at most `most` of them.
    ///
    /// # Errors
    /// [`BlobError`] if the file is gone, too long or changed.
    pub fn read(&self, digest: &Sha256, most: u64) -> Result<Vec<u8>, BlobError> {
        if *digest == Sha256(Hasher::digest([]).into()) {
            return Ok(Vec::new());
        }
        let path = self.path(digest);
        let mut bytes = Vec::new();
        let opened = File::open(&path).map_err(|source| file(&path, source))?;
        opened.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|source| file(&path, source))?;
        if u64::try_from(bytes.len()).map_or(true, |length| length > most) {
            return Err(BlobError::TooLong { digest: *digest, most });
        }
        let got = Sha256(Hasher::digest(&bytes).into());
        if got != *digest {
            return Err(BlobError::Changed { digest: *digest, got });
        }
        Ok(bytes)
    }

    /// Writes the bytes under a name that is free.
    fn write_durably(&self, bytes: &[u8]) -> Result<PathBuf, BlobError> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let half = self.directory.join(format!("{HALF_WRITTEN}{number}"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(source) => return Err(file(&half, source)),
                Ok(mut made) => {
                    made.write_all(bytes).and_then(|()| made.sync_all()).map_err(|source| file(&half, source))?;
                    return Ok(half);
                }
            }
        }
    }

    /// Whether the file is there with these bytes. The one who wrote it may not have made it durable yet, so that the
    /// file and the directory are synced all the same.
    fn holds(&self, digest: &Sha256, bytes: &[u8]) -> bool {
        let path = self.path(digest);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let same = self.read(digest, length).is_ok();
        same && File::open(&path).and_then(|there| there.sync_all()).is_ok() && self.sync().is_ok()
    }

    fn path(&self, digest: &Sha256) -> PathBuf {
        self.directory.join(digest.hex())
    }

    fn sync(&self) -> std::io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

/// How a file is called until it is whole.
const HALF_WRITTEN: &str = "new-";

fn remove(item: &DirEntry) -> std::io::Result<()> {
    // A link is not followed, neither here nor within the folder (fs::remove_dir_all).
    if item.file_type()?.is_dir() { std::fs::remove_dir_all(item.path()) } else { std::fs::remove_file(item.path()) }
}

fn file(path: &Path, source: std::io::Error) -> BlobError {
    BlobError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_the_same_bytes_are_stored_once() {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(directory.path()).unwrap();
        let digest = blobs.put(b"abc").unwrap();
        assert_eq!(blobs.put(b"abc").unwrap(), digest);
        assert_eq!(blobs.read(&digest, 3).unwrap(), b"abc");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(matches!(blobs.read(&digest, 2), Err(BlobError::TooLong { most: 2, .. })));
    }

    #[test]
    fn nothing_is_stored_for_the_empty_content() {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(directory.path()).unwrap();
        let digest = blobs.put(b"").unwrap();
        assert_eq!(blobs.read(&digest, 0).unwrap(), b"");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_changed_or_missing_file_is_an_error_and_put_mends_it() {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(directory.path()).unwrap();
        let digest = blobs.put(b"abc").unwrap();
        std::fs::write(directory.path().join(digest.hex()), b"abd").unwrap();
        assert!(matches!(blobs.read(&digest, 3), Err(BlobError::Changed { .. })));
        assert_eq!(blobs.put(b"abc").unwrap(), digest);
        assert_eq!(blobs.read(&digest, 3).unwrap(), b"abc");
        std::fs::remove_file(directory.path().join(digest.hex())).unwrap();
        assert!(matches!(blobs.read(&digest, 3), Err(BlobError::File { .. })));
    }

    #[test]
    fn what_was_left_half_written_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("new-7"), b"x").unwrap();
        // Not ours, and no reason not to start: a folder with something in it, a link to elsewhere.
        std::fs::create_dir_all(directory.path().join("new-8/deep")).unwrap();
        std::fs::write(directory.path().join("new-8/deep/x"), b"x").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), directory.path().join("new-9")).unwrap();
        Blobs::open(directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(elsewhere.path().is_dir());
    }

    #[test]
    fn a_name_that_is_taken_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(directory.path()).unwrap();
        std::fs::create_dir(directory.path().join("new-0")).unwrap();
        let digest = blobs.put(b"abc").unwrap();
        assert_eq!(blobs.read(&digest, 3).unwrap(), b"abc");
    }
}
