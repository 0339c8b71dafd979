//! The program that every way runs: a static binary of some hundred bytes that exits with 0 and does nothing else, so that
//! what is measured is the way.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::BenchError;

/// Where it is in the folder, and in every sandbox.
pub(super) const INSIDE: &str = "/programs/nothing";

/// The program in a folder of its own, which is removed with it.
#[derive(Debug)]
pub(super) struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    pub(super) fn make(parent: &Path) -> Result<Self, BenchError> {
        let file = |path: &Path| {
            let path = path.to_owned();
            move |source| BenchError::File { path, source }
        };
        let folder = tempfile::Builder::new().prefix("toolcell-bench-").tempdir_in(parent).map_err(file(parent))?;
        // Cells look at it with ids that own nothing.
        let open = || std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open()).map_err(file(folder.path()))?;
        let program = Self { folder };
        let (dir, path) = (program.dir(), program.path());
        std::fs::create_dir(&dir).map_err(file(&dir))?;
        std::fs::set_permissions(&dir, open()).map_err(file(&dir))?;
        std::fs::write(&path, binary()).map_err(file(&path))?;
        std::fs::set_permissions(&path, open()).map_err(file(&path))?;
        Ok(program)
    }

    /// The folder for everything.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the program alone, to be shown in sandboxes.
    pub(super) fn dir(&self) -> PathBuf {
        self.folder.path().join("programs")
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir().join("nothing")
    }
}

/// An ELF file for x86_64 with one segment (elf(5)) that calls exit_group(0).
pub(super) fn binary() -> Vec<u8> {
    const ADDRESS: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    // mov edi, 0; mov eax, 231 (exit_group); syscall
    const CODE: [u8; 12] = [0xbf, 0, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05];
    let size = HEADERS + 12;
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for half in [2_u16, 62] {
        file.extend(half.to_le_bytes()); // e_type EXEC, e_machine x86_64
    }
    file.extend(1_u32.to_le_bytes()); // e_version
    for word in [ADDRESS + HEADERS, 64, 0] {
        file.extend(word.to_le_bytes()); // e_entry, e_phoff, e_shoff
    }
    file.extend(0_u32.to_le_bytes()); // e_flags
    for half in [64_u16, 56, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes()); // sizes and counts of the headers
    }
    for half in [1_u32, 5] {
        file.extend(half.to_le_bytes()); // p_type LOAD, p_flags read and execute
    }
    for word in [0, ADDRESS, ADDRESS, size, size, 0x1000] {
        file.extend(word.to_le_bytes()); // offset, addresses, sizes, alignment
    }
    file.extend(CODE);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_and_exits_with_0() {
        let program = Program::make(&std::env::temp_dir()).unwrap();
        assert_eq!(binary().len(), 132);
        let status = crate::process::command(program.path()).env_clear().status().unwrap();
        assert_eq!(status.code(), Some(0));
    }
}
