//! System V objects (sysvipc(7)), which no safe crate offers: made for everybody, with a text in them, and removed with
//! what stands for them here.

use std::io;

/// Rights of an object: everybody reads and writes.
const EVERYBODY: libc::c_int = 0o666;
/// Longest text of a message, in bytes.
const MESSAGE_MAX: usize = 128;

/// A message queue of ours, removed when this is dropped.
#[derive(Debug)]
pub struct MessageQueue {
    id: libc::c_int,
    key: i32,
}

#[repr(C)]
struct Message {
    kind: libc::c_long,
    text: [u8; MESSAGE_MAX],
}

impl MessageQueue {
    /// Makes one that everybody may use, under a key that nobody has; 0 (IPC_PRIVATE) makes one without a key.
    ///
    /// # Errors
    /// EEXIST if somebody has that key, ENOSPC if there are too many queues (msgget(2)).
    pub fn make(key: i32) -> io::Result<Self> {
        Ok(Self { id: queue(key, libc::IPC_CREAT | libc::IPC_EXCL | EVERYBODY)?, key })
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> i32 {
        self.key
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Puts a text into it, without waiting for room.
    ///
    /// # Errors
    /// EINVAL for more than 128 bytes, EAGAIN for a full queue (msgsnd(2)).
    pub fn send(&self, text: &[u8]) -> io::Result<()> {
        let mut message = Message { kind: 1, text: [0; MESSAGE_MAX] };
        let room = message.text.get_mut(..text.len()).ok_or(io::ErrorKind::InvalidInput)?;
        room.copy_from_slice(text);
        let pointer = std::ptr::from_ref(&message).cast();
        // SAFETY: msgsnd(2) reads a long and then `text.len()` bytes behind the pointer. `Message` is `repr(C)` with the
        // long first, and has at least so many bytes, or the slice above had not been there. The kernel copies them.
        let done = unsafe { libc::msgsnd(self.id, pointer, text.len(), libc::IPC_NOWAIT) };
        if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Looks for somebody's queue and changes nothing.
    ///
    /// # Errors
    /// ENOENT if there is none under that key (msgget(2)).
    pub fn find(key: i32) -> io::Result<()> {
        queue(key, 0).map(|_id| ())
    }
}

impl Drop for MessageQueue {
    fn drop(&mut self) {
        // SAFETY: msgctl(IPC_RMID) takes an id and ignores the pointer (msgctl(2)); the id is this queue's own. The kernel
        // keeps nothing. A failure (EIDRM) means that somebody else has removed it already.
        let _removed = unsafe { libc::msgctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

fn queue(key: i32, flags: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: msgget(2) takes two integers, any of which it may refuse; the kernel keeps nothing of ours.
    let id = unsafe { libc::msgget(key, flags) };
    if id == -1 { Err(io::Error::last_os_error()) } else { Ok(id) }
}

/// A shared memory segment of ours, removed when this is dropped.
#[derive(Debug)]
pub struct SharedSegment {
    id: libc::c_int,
}

impl SharedSegment {
    /// Makes one without a key that everybody may use and that begins with this text.
    ///
    /// # Errors
    /// EINVAL for no text, ENOSPC if there are too many segments (shmget(2)).
    pub fn make(text: &[u8]) -> io::Result<Self> {
        // SAFETY: shmget(2) takes three integers, any of which it may refuse; the kernel keeps nothing of ours.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, text.len(), libc::IPC_CREAT | EVERYBODY) };
        if id == -1 {
            return Err(io::Error::last_os_error());
        }
        let segment = Self { id };
        segment.write(text)?;
        Ok(segment)
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        // SAFETY: shmat(2) with a null address maps the segment where nothing is; no memory of ours is touched. The kernel
        // keeps the mapping until it is detached below.
        let start = unsafe { libc::shmat(self.id, std::ptr::null(), 0) };
        // The call's own word for a failure is the address -1.
        if start.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `start` is a mapping of at least `text.len()` writable bytes, the size that `make` has asked for, which
        // nothing in this process has a reference to; the source is a slice of that length, and they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), start.cast::<u8>(), text.len()) };
        // SAFETY: `start` is what shmat(2) gave and is detached once, here; nothing points into it after this.
        let done = unsafe { libc::shmdt(start) };
        if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }
}

impl Drop for SharedSegment {
    fn drop(&mut self) {
        // SAFETY: shmctl(IPC_RMID) takes an id and ignores the pointer (shmctl(2)); the id is this segment's own. The kernel
        // keeps the segment until nobody has it attached. A failure (EIDRM) means that somebody else has removed it.
        let _removed = unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// A set of one semaphore of ours, removed when this is dropped.
#[derive(Debug)]
pub struct Semaphore {
    id: libc::c_int,
}

impl Semaphore {
    /// Makes one without a key that everybody may use.
    ///
    /// # Errors
    /// ENOSPC if there are too many (semget(2)).
    pub fn make() -> io::Result<Self> {
        // SAFETY: semget(2) takes three integers, any of which it may refuse; the kernel keeps nothing of ours.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 1, libc::IPC_CREAT | EVERYBODY) };
        if id == -1 { Err(io::Error::last_os_error()) } else { Ok(Self { id }) }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: semctl(IPC_RMID) takes an id and a number that it ignores, and no fourth argument (semctl(2)); the id is
        // this set's own. The kernel keeps nothing. A failure (EIDRM) means that somebody else has removed it already.
        let _removed = unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) };
    }
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

    /// A line of /proc/sysvipc/KIND: whether the id is among the objects, and the number in another of its columns.
    fn listed(kind: &str, id: i32, column: &str) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap();
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let head = lines.next().unwrap();
        let at = |name: &str| head.iter().position(|word| *word == name).unwrap();
        let line = lines.find(|line| line[1] == id.to_string())?;
        assert_eq!(line[2], "666", "{kind}: everybody may use it");
        Some(line[at(column)].parse().unwrap())
    }

    #[test]
    fn a_text_lies_in_a_queue_and_in_a_segment_as_long_as_they_live() {
        let (queue, segment) = (MessageQueue::make(0).unwrap(), SharedSegment::make(b"a text").unwrap());
        queue.send(b"a text").unwrap();
        assert_eq!(queue.send(&[0; MESSAGE_MAX + 1]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!((listed("msg", queue.id(), "cbytes"), listed("msg", queue.id(), "qnum")), (Some(6), Some(1)));
        assert_eq!((listed("shm", segment.id(), "size"), listed("shm", segment.id(), "nattch")), (Some(6), Some(0)));
        let (queue_id, segment_id) = (queue.id(), segment.id());
        drop((queue, segment));
        assert_eq!((listed("msg", queue_id, "qnum"), listed("shm", segment_id, "size")), (None, None));
        assert!(SharedSegment::make(b"").is_err());
    }

    #[test]
    fn a_semaphore_goes_with_what_stands_for_it() {
        let semaphore = Semaphore::make().unwrap();
        let id = semaphore.id();
        assert_eq!(listed("sem", id, "nsems"), Some(1));
        drop(semaphore);
        assert_eq!(listed("sem", id, "nsems"), None);
    }
}
