//! Files of /proc and of control groups, in few system calls. Their size reads as 0, so that std's readers ask for it in
//! vain and then begin with 32 bytes; a cell is read back from some thirty of them.

use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Room for all of a file of one value and for the most of /proc/PID/status; longer ones make it grow.
const FIRST_BYTES: usize = 4096;

/// All of the file.
///
/// # Errors
/// The kernel's answer to open(2) or read(2).
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(FIRST_BYTES);
    read_into(path, &mut content)?;
    Ok(content)
}

/// The same into an empty buffer, which stays where it is if it is large enough: one that grows leaves copies behind.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_into(path: &Path, content: &mut Vec<u8>) -> io::Result<()> {
    let file = rustix::io::retry_on_intr(|| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()))?;
    loop {
        if content.capacity() == content.len() {
            content.reserve(content.len());
        }
        match rustix::io::read(&file, rustix::buffer::spare_capacity(content)) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The same as text.
///
/// # Errors
/// As [`read`], and `InvalidData` for what is no UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_whatever_its_size_says() {
        let status = read_text(Path::new("/proc/self/status")).unwrap();
        assert!(status.starts_with("Name:") && status.ends_with('\n'), "{status}");
        let long = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(read(&std::env::current_exe().unwrap()).unwrap() == long);
    }

    #[test]
    fn what_is_not_there_and_what_is_no_text_are_errors() {
        assert_eq!(read(Path::new("/proc/self/nothing")).unwrap_err().raw_os_error(), Some(nix::libc::ENOENT));
        let error = read_text(&std::env::current_exe().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
