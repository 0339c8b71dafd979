//! Where the ledger may live: a local file system, a file of nobody else's, enough free space.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::LedgerError;

/// Free bytes below which no intent is taken, so that the outcomes of what already runs can be written.
pub const FREE_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// File systems whose fsync and locks are known to hold on one machine, by statfs(2) magic. tmpfs is durable for as
/// long as the machine is up; the signer's memory lies on the same one and goes with it.
const LOCAL: [(u64, &str); 8] = [
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0xf2f5_2010, "f2fs"),
    (0x2fc1_2fc1, "zfs"),
    (0xca45_1a4e, "bcachefs"),
    (0x0102_1994, "tmpfs"),
    (0x3153_464a, "jfs"),
];
/// Common ones that are refused, for the message only: all that is not local is refused.
const FOREIGN: [(u64, &str); 6] = [
    (0x794c_7630, "overlay"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
];

/// Refuses a directory on a file system that is not known to be local.
pub(crate) fn check_file_system(directory: &Path) -> Result<(), LedgerError> {
    let stat = rustix::fs::statfs(directory).map_err(|errno| file(directory, errno.into()))?;
    // The kernel's word is a signed long here and there; the magic numbers are 32 bits wide.
    let magic = u64::try_from(i128::from(stat.f_type) & 0xffff_ffff).unwrap_or(0);
    if LOCAL.iter().any(|(known, _)| *known == magic) {
        return Ok(());
    }
    let name = FOREIGN.iter().find(|(known, _)| *known == magic).map_or("unknown", |(_, name)| name);
    Err(LedgerError::FileSystem { path: directory.to_owned(), found: format!("{name} ({magic:#x})") })
}

/// Makes the file if it is not there (0600, durable), and refuses one that others could read or change.
pub(crate) fn check_file(path: &Path, directory: &Path) -> Result<(), LedgerError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(made) => {
            made.sync_all().map_err(|source| file(path, source))?;
            File::open(directory).and_then(|dir| dir.sync_all()).map_err(|source| file(directory, source))?;
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(source) => return Err(file(path, source)),
    }
    let metadata = std::fs::symlink_metadata(path).map_err(|source| file(path, source))?;
    let me = rustix::process::geteuid().as_raw();
    let found = match (metadata.file_type().is_file(), metadata.uid() == me, metadata.mode() & 0o7777, metadata.nlink())
    {
        (true, true, 0o600, 1) => return Ok(()),
        (false, ..) => "no plain file".to_owned(),
        (true, false, ..) => format!("owned by user {}", metadata.uid()),
        (true, true, mode, links) => format!("of mode {mode:04o} with {links} names"),
    };
    Err(LedgerError::FileMode { path: path.to_owned(), found })
}

/// Refuses when too little is free.
pub(crate) fn check_space(directory: &Path, least: u64) -> Result<(), LedgerError> {
    let stat = rustix::fs::statvfs(directory).map_err(|errno| file(directory, errno.into()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free < least {
        return Err(LedgerError::NoSpace { free, least });
    }
    Ok(())
}

fn file(path: &Path, source: std::io::Error) -> LedgerError {
    LedgerError::File { path: path.to_owned(), source }
}
