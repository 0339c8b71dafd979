//! Which program this is: the linker's build id of the running binary, or the digest of its bytes where it has none.

use std::fs::File;
use std::io::{self, Read as _};

use object::Object as _;
use object::read::ReadCache;
use sha2::{Digest as _, Sha256};

/// The running binary itself, even when its file was replaced meanwhile (proc(5)).
pub(crate) const SELF_EXE: &str = "/proc/self/exe";

/// `gnu-build-id:HEX` or `sha256:HEX` of the running binary.
///
/// # Errors
/// The error of reading /proc/self/exe.
pub(crate) fn of_self() -> io::Result<String> {
    let file = File::open(SELF_EXE)?;
    match linked(&file) {
        Some(id) if !id.is_empty() => Ok(format!("gnu-build-id:{}", hex(&id))),
        Some(_) | None => {
            let digest = of_bytes(File::open(SELF_EXE)?)?;
            Ok(format!("sha256:{}", hex(&digest)))
        }
    }
}

/// Reads only the headers and the note, not the whole file.
fn linked(file: &File) -> Option<Vec<u8>> {
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    elf.build_id().ok().flatten().map(<[u8]>::to_vec)
}

fn of_bytes(mut file: File) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0_u8; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize().into()),
            length => hasher.update(piece.get(..length).unwrap_or_default()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(|half| char::from_digit(half.into(), 16)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_binary_has_one_stable_digest() {
        let digest = of_self().unwrap();
        assert_eq!(digest, of_self().unwrap());
        assert!(digest.starts_with("gnu-build-id:") || digest.starts_with("sha256:"), "{digest}");
    }

    #[test]
    fn a_binary_without_a_build_id_is_known_by_all_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        let digest = hex(&of_bytes(File::open(&path).unwrap()).unwrap());
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(linked(&File::open(&path).unwrap()), None);
    }

    #[test]
    fn hex_is_lower_case_and_complete() {
        assert_eq!(hex(&[0, 0x0f, 0xab]), "000fab");
    }
}
