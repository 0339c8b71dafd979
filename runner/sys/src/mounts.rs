//! mount_setattr(2), Linux 5.12.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Flags of a mount: those to be set, or with [`clear_mount_attributes`] those to be taken off. Whatever is false stays as
/// it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's own independent flags")]
pub struct MountAttr {
    /// MOUNT_ATTR_RDONLY.
    pub read_only: bool,
    /// MOUNT_ATTR_NOSUID.
    pub no_suid: bool,
    /// MOUNT_ATTR_NODEV.
    pub no_dev: bool,
    /// MOUNT_ATTR_NOEXEC.
    pub no_exec: bool,
    /// MS_PRIVATE instead of whatever propagation it had.
    pub private: bool,
}

/// `struct mount_attr` of linux/mount.h.
#[repr(C)]
struct RawAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Sets attributes on the mount that `mount` is the root of, and with `recursive` on all below it.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN over the mount's user namespace, EINVAL when `mount` is no root of a mount, ENOSYS
/// before Linux 5.12.
pub fn set_mount_attributes(mount: BorrowedFd<'_>, attr: MountAttr, recursive: bool) -> io::Result<()> {
    let propagation = if attr.private { libc::MS_PRIVATE } else { 0 };
    let raw = RawAttr { attr_set: attr.bits(), attr_clr: 0, propagation, userns_fd: 0 };
    set(mount, &raw, recursive)
}

/// Takes flags off the mount that `mount` is the root of, and with `recursive` off all below it; `private` means nothing
/// here.
///
/// # Errors
/// As [`set_mount_attributes`]; EPERM also for a flag that is locked (mount_namespaces(7)).
pub fn clear_mount_attributes(mount: BorrowedFd<'_>, attr: MountAttr, recursive: bool) -> io::Result<()> {
    set(mount, &RawAttr { attr_set: 0, attr_clr: attr.bits(), propagation: 0, userns_fd: 0 }, recursive)
}

impl MountAttr {
    fn bits(self) -> u64 {
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        flag(self.read_only, libc::MOUNT_ATTR_RDONLY)
            | flag(self.no_suid, libc::MOUNT_ATTR_NOSUID)
            | flag(self.no_dev, libc::MOUNT_ATTR_NODEV)
            | flag(self.no_exec, libc::MOUNT_ATTR_NOEXEC)
    }
}

fn set(mount: BorrowedFd<'_>, raw: &RawAttr, recursive: bool) -> io::Result<()> {
    let at = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: mount_setattr(2) requires a NUL-terminated path, which the literal is, and a mount_attr of the given
    // size, which `raw` is; both outlive the call and the kernel keeps neither.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            at,
            std::ptr::from_ref(raw),
            size_of::<RawAttr>(),
        )
    };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Shows the files of a detached mount under other ids: those on disk as the user namespace's inside ids, in the cell as
/// what they are mapped to (MOUNT_ATTR_IDMAP, Linux 5.12). Ids that are not mapped are shown as nobody's.
///
/// # Errors
/// EINVAL where the file system does not know it or the mount is in use, EPERM without CAP_SYS_ADMIN over the file
/// system's own user namespace, which nobody but root of the machine has for a disk.
pub fn map_mount_ids(mount: BorrowedFd<'_>, users: BorrowedFd<'_>) -> io::Result<()> {
    let userns_fd = u64::try_from(users.as_raw_fd()).map_err(|_negative| io::Error::from_raw_os_error(libc::EBADF))?;
    let raw = RawAttr { attr_set: libc::MOUNT_ATTR_IDMAP, attr_clr: 0, propagation: 0, userns_fd };
    // SAFETY: as for `set_mount_attributes`; both descriptors are borrowed until after the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const raw,
            size_of::<RawAttr>(),
        )
    };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn what_is_no_mount_root_is_refused() {
        let dir = std::fs::File::open("/usr/bin").unwrap();
        let attr = MountAttr { read_only: true, ..MountAttr::default() };
        assert!(set_mount_attributes(dir.as_fd(), attr, false).is_err());
    }
}
