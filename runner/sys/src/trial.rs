//! A call that a survey tries and that no safe crate offers, as filters leave it out.

use std::io;

/// Asks for an io_uring of no entries, which the kernel refuses to everybody: EINVAL or EFAULT where the call is there
/// and allowed, EPERM where kernel.io_uring_disabled forbids it, ENOSYS where a filter knows nothing of it
/// (io_uring_setup(2)).
///
/// # Errors
/// Always.
pub fn ask_for_io_uring() -> io::Result<()> {
    let entries: libc::c_uint = 0;
    // SAFETY: io_uring_setup(2) takes a count and a pointer to its parameters. The count 0 and the null pointer are
    // refused before anything is written; the kernel keeps nothing.
    let done = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, std::ptr::null_mut::<libc::c_void>()) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_a_ring_of_nothing() {
        assert!(ask_for_io_uring().is_err());
    }
}
