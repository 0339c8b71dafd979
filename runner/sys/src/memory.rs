//! Memory files that nobody can change, in which parts of a plan travel from process to process.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// A memory file with these bytes, read from its beginning, sealed against every change (fcntl(2), F_ADD_SEALS).
///
/// # Errors
/// EMFILE, ENFILE, ENOMEM (memfd_create(2)).
pub fn sealed_memory(name: &str, bytes: &[u8]) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // NOEXEC_SEAL: never executable (Linux 6.3); older kernels answer EINVAL.
    let made = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    };
    let mut file = File::from(made?);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_sealed_file_reads_from_its_beginning_and_cannot_be_changed() {
        let mut file = sealed_memory("test", b"abc").unwrap();
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"abc");
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
        assert!(file.set_len(10).is_err());
        assert!(fcntl_add_seals(&file, SealFlags::FUTURE_WRITE).is_err());
    }
}
