//! Descriptors: those handed down at exec, those to close, and who is at the other end of a socket.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// Takes over a descriptor number that the parent handed down across execve(2), and sets close-on-exec on it.
///
/// # Errors
/// EBADF if nothing is open there: the program was not started by its own parent part.
pub fn inherited_fd(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl(F_SETFD) takes any integer and fails with EBADF when it is no open descriptor; the kernel keeps
    // nothing of the arguments.
    let done = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the fcntl above proved that the number is open. Each part takes over each of its fixed numbers once, at
    // its start, before it opens anything else, so that no other owner exists.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Closes every descriptor from `first` up (close_range(2), Linux 5.9).
///
/// The caller must own none of them as `OwnedFd` any more, or never drop those: it is for the moment before exec in
/// a fresh child.
///
/// # Errors
/// EINVAL for a negative number, ENOSYS before Linux 5.9.
pub fn close_from(first: RawFd) -> io::Result<()> {
    close_range(first, 0)
}

/// Marks every descriptor from 3 up close-on-exec (close_range(2) with CLOSE_RANGE_CLOEXEC, Linux 5.11).
///
/// # Errors
/// EINVAL or ENOSYS on kernels before 5.11.
pub fn limit_fds_to_stdio() -> io::Result<()> {
    close_range(3, libc::CLOSE_RANGE_CLOEXEC)
}

/// Takes close-on-exec off a descriptor number (fcntl(2), F_SETFD), whoever in this process owns it.
///
/// # Errors
/// EBADF if nothing is open there.
pub fn keep_over_exec(number: RawFd) -> io::Result<()> {
    // SAFETY: fcntl(F_SETFD) takes any integer and fails with EBADF when it is no open descriptor; the kernel keeps
    // nothing of the arguments, and the descriptor stays whose it was.
    let done = unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether a descriptor number is open for its path alone (O_PATH, open(2)).
#[must_use]
pub fn is_path_only(number: RawFd) -> bool {
    // SAFETY: fcntl(F_GETFL) takes any integer and fails with EBADF when it is no open descriptor; it changes nothing.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
    flags != -1 && flags & libc::O_PATH != 0
}

/// Closes every descriptor from 3 up but those in `keep`.
///
/// Only for a fresh child that ends by exec or `_exit`: descriptors that the parent's copied state still owns are
/// closed under it.
///
/// # Errors
/// As [`close_from`].
pub fn close_except(keep: &[RawFd]) -> io::Result<()> {
    let mut sorted: Vec<RawFd> = keep.iter().copied().filter(|number| *number >= 3).collect();
    sorted.sort_unstable();
    let mut first = 3;
    for number in sorted {
        if number > first {
            close_range_between(first, number - 1, 0)?;
        }
        first = number.saturating_add(1);
    }
    close_from(first)
}

fn close_range(first: RawFd, flags: u32) -> io::Result<()> {
    close_range_between(first, -1, flags)
}

/// A `last` of -1 is the largest unsigned number, as the kernel wants it for "all from `first` up".
fn close_range_between(first: RawFd, last: RawFd, flags: u32) -> io::Result<()> {
    // SAFETY: close_range(2) takes three integers and touches only this process's descriptor table.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The supplementary groups of the process at the other end of a connected Unix socket, as they were when it
/// connected (SO_PEERGROUPS, Linux 4.13).
///
/// # Errors
/// The getsockopt(2) error; ENOTCONN-like errors mean that the socket is no connected Unix stream socket.
pub fn peer_groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut groups = vec![0_u32; 64];
    loop {
        let mut bytes = libc::socklen_t::try_from(groups.len() * size_of::<u32>()).map_err(io::Error::other)?;
        // SAFETY: the pointer and the length describe the vector's own initialised storage, which outlives the call;
        // the kernel writes at most `bytes` bytes and keeps nothing.
        let done = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let count = usize::try_from(bytes).map_err(io::Error::other)? / size_of::<u32>();
        if done == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        // ERANGE: the kernel has put the needed length into `bytes` (net/core/sock.c).
        if error.raw_os_error() != Some(libc::ERANGE) || count <= groups.len() {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_number_that_is_not_open_is_refused() {
        assert_eq!(inherited_fd(998_877).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn peer_groups_of_ourselves_are_our_groups() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut expected: Vec<u32> = nix::unistd::getgroups().unwrap().iter().map(|gid| gid.as_raw()).collect();
        let mut seen = peer_groups(ours.as_fd()).unwrap();
        expected.sort_unstable();
        seen.sort_unstable();
        assert_eq!(seen, expected);
    }

    #[test]
    fn peer_groups_of_no_socket_fail() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(peer_groups(file.as_fd()).is_err());
    }
}
