//! Reading the policy directory, before privilege is given up: its files may be readable for root alone.
//!
//! Guarantees: only plain files of the directory itself are read, no link is followed, and what cannot be read is an
//! error, because a file that was left out may be one that somebody relies on. Does not: understand them.

use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::DaemonError;

/// Most files that are read; a policy has three at most.
const FILES_MAX: usize = 16;
/// Most bytes of one file that are read; the policy refuses one of this size with better words.
const FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Name and content of every file, sorted by name.
///
/// # Errors
/// [`DaemonError::PolicyFile`] for the first file that is none or cannot be read, [`DaemonError::PolicyFolder`] if there
/// are too many.
pub(crate) fn read(directory: impl AsFd) -> Result<Vec<(String, Vec<u8>)>, DaemonError> {
    let unreadable = |name: &str, source: std::io::Error| DaemonError::PolicyFile { name: name.to_owned(), source };
    let entries = Dir::read_from(&directory).map_err(|errno| unreadable(".", errno.into()))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|errno| unreadable(".", errno.into()))?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        // Escaped: a name that is no UTF-8 or holds control characters is not a policy file, and is told apart so.
        let shown = String::from_utf8_lossy(name.to_bytes()).escape_debug().to_string();
        if files.len() == FILES_MAX {
            return Err(DaemonError::PolicyFolder { path: PathBuf::from("the policy directory"), most: FILES_MAX });
        }
        // NONBLOCK: opening a FIFO must not wait for a writer (open(2)).
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&directory, name, flags, Mode::empty())
            .and_then(plain)
            .map_err(|errno| unreadable(&shown, errno.into()))?;
        let mut bytes = Vec::new();
        let read = std::fs::File::from(file).take(FILE_MAX_BYTES).read_to_end(&mut bytes);
        read.map_err(|source| unreadable(&shown, source))?;
        files.push((shown, bytes));
    }
    files.sort();
    Ok(files)
}

/// Refuses directories, devices and pipes.
fn plain(file: OwnedFd) -> Result<OwnedFd, Errno> {
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        FileType::Directory => Err(Errno::ISDIR),
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &std::path::Path) -> std::fs::File {
        std::fs::File::open(path).unwrap()
    }

    #[test]
    fn plain_files_are_read_in_the_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("tools.toml"), "b").unwrap();
        std::fs::write(directory.path().join("rules.toml"), "a").unwrap();
        let files = read(open(directory.path())).unwrap();
        assert_eq!(files, [("rules.toml".to_owned(), b"a".to_vec()), ("tools.toml".to_owned(), b"b".to_vec())]);
    }

    #[test]
    fn links_directories_and_pipes_are_errors_that_name_them() {
        for make in [
            |path: &std::path::Path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(),
            |path: &std::path::Path| std::fs::create_dir(path).unwrap(),
            |path: &std::path::Path| {
                rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap();
            },
        ] {
            let directory = tempfile::tempdir().unwrap();
            make(&directory.path().join("tools.toml"));
            let error = read(open(directory.path())).unwrap_err();
            assert!(matches!(&error, DaemonError::PolicyFile { name, .. } if name == "tools.toml"), "{error}");
        }
    }

    #[test]
    fn a_folder_full_of_files_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..=FILES_MAX {
            std::fs::write(directory.path().join(number.to_string()), "").unwrap();
        }
        assert!(matches!(read(open(directory.path())), Err(DaemonError::PolicyFolder { .. })));
    }
}
