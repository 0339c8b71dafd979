//! Files of a hierarchy: opened, never created; each error with its path.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal};

use super::CgroupError;
use crate::kernel_file;

pub(super) fn access(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |source| CgroupError::Access { action, path, source }
}

pub(super) fn read(path: &Path) -> Result<String, CgroupError> {
    kernel_file::read_text(path).map_err(access("read", path))
}

pub(super) fn number(path: &Path) -> Result<u64, CgroupError> {
    let text = read(path)?;
    text.trim().parse().map_err(|_parse| CgroupError::NotANumber { path: path.to_owned(), got: text.trim().to_owned() })
}

/// The number behind a key, as in `usage_usec 12`.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

pub(super) fn write(path: &Path, value: u64) -> Result<(), CgroupError> {
    write_text(path, &value.to_string())
}

/// Opens what the kernel made; never creates.
pub(super) fn write_text(path: &Path, text: &str) -> Result<(), CgroupError> {
    put(path, text).map_err(access("write", path))
}

/// As [`write_text`], for who makes more of the kernel's answer.
pub(super) fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

pub(super) fn remove_dir(path: &Path) -> Result<(), CgroupError> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(access("remove", path)(error)),
    }
}

/// Removes a group that others may still use: then it stays.
pub(super) fn remove_unless_used(path: &Path) -> Result<(), CgroupError> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(()),
        Err(error)
            if matches!(error.raw_os_error(), Some(nix::libc::EBUSY | nix::libc::ENOTEMPTY | nix::libc::ENOENT)) =>
        {
            Ok(())
        }
        Err(error) => Err(access("remove", path)(error)),
    }
}

/// Whether a group is not there, or was removed while it was looked at (ENODEV of its files).
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(nix::libc::ENOENT | nix::libc::ENODEV))
}

/// Makes a group again while its parent vanishes under it: the last of several instances removes the common parent at
/// the moment in which another begins.
pub(super) fn again_while_it_vanishes(make: impl Fn() -> Result<(), CgroupError>) -> Result<(), CgroupError> {
    for _round in 0..VANISHED_MAX {
        match make() {
            Err(CgroupError::Access { source, .. }) if is_gone(&source) => {}
            other => return other,
        }
    }
    make()
}

/// More often than instances end at one moment.
const VANISHED_MAX: u32 = 100;

/// Process numbers in `cgroup.procs` of a group.
pub(super) fn members_of(dir: &Path) -> Result<Vec<i32>, CgroupError> {
    let text = read(&dir.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}

/// Kills by pidfd, after seeing that the number still is a member: a number can be reused, a pidfd cannot.
pub(super) fn kill_member(
    number: i32,
    is_member: impl FnOnce(i32) -> Result<bool, CgroupError>,
) -> Result<(), CgroupError> {
    let Some(pid) = Pid::from_raw(number) else { return Ok(()) };
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => {
            if is_member(number)? {
                match rustix::process::pidfd_send_signal(&pidfd, Signal::KILL) {
                    Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                    Err(errno) => tracing::warn!(pid = number, error = %errno, "cannot kill a member"),
                }
            }
        }
        Err(rustix::io::Errno::SRCH) => {}
        Err(errno) => tracing::warn!(pid = number, error = %errno, "cannot open a member"),
    }
    Ok(())
}
