//! Calls that a survey tries and that no safe crate offers: System V message queues, and a call that filters leave out.

use std::io;

/// Rights of a queue: everybody reads and writes.
const EVERYBODY: libc::c_int = 0o666;

/// A System V message queue of ours, removed when this is dropped (sysvipc(7)).
#[derive(Debug)]
pub struct MessageQueue {
    id: libc::c_int,
    key: i32,
}

impl MessageQueue {
    /// Makes one that everybody may use, under a key that nobody has; 0 (IPC_PRIVATE) makes one without a key.
    ///
    /// # Errors
    /// EEXIST if somebody has that key, ENOSPC if there are too many queues (msgget(2)).
    pub fn make(key: i32) -> io::Result<Self> {
        Ok(Self { id: get(key, libc::IPC_CREAT | libc::IPC_EXCL | EVERYBODY)?, key })
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> i32 {
        self.key
    }

    /// Looks for somebody's queue and changes nothing.
    ///
    /// # Errors
    /// ENOENT if there is none under that key (msgget(2)).
    pub fn find(key: i32) -> io::Result<()> {
        get(key, 0).map(|_id| ())
    }
}

impl Drop for MessageQueue {
    fn drop(&mut self) {
        // SAFETY: msgctl(IPC_RMID) takes an id and ignores the pointer (msgctl(2)); the id is this queue's own. The kernel
        // keeps nothing. A failure (EIDRM) means that somebody else has removed it already.
        let _removed = unsafe { libc::msgctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

fn get(key: i32, flags: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: msgget(2) takes two integers, any of which it may refuse; the kernel keeps nothing of ours.
    let id = unsafe { libc::msgget(key, flags) };
    if id == -1 { Err(io::Error::last_os_error()) } else { Ok(id) }
}

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
    fn a_queue_is_found_as_long_as_it_lives() {
        let key = 0x7443_0000 | i32::try_from(std::process::id() & 0xffff).unwrap();
        let queue = MessageQueue::make(key).unwrap();
        assert_eq!(queue.key(), key);
        MessageQueue::find(key).unwrap();
        assert_eq!(MessageQueue::make(key).unwrap_err().raw_os_error(), Some(libc::EEXIST));
        drop(queue);
        assert_eq!(MessageQueue::find(key).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn nobody_gets_a_ring_of_nothing() {
        assert!(ask_for_io_uring().is_err());
    }
}
