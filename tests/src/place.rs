//! Where the suite keeps things: a directory on a real disk with short paths (a socket's path holds 107 bytes), user
//! id ranges that no other test has, and the build output.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use crate::command::{toolcell_path, workspace_root};
use crate::process::Process;

/// First user id of the suite's ranges: away from the product's own default base. `TOOLCELL_TESTS_FIRST_UID` names another,
/// for a suite in a container, whose processes the machine's own sees.
const FIRST_UID: u32 = 1_200_000_000;
const RANGE: u32 = 65_536;
const RANGES: u32 = 256;

/// The suite's directory: `TOOLCELL_TESTS_DIR`, else under /var/tmp, which Debian keeps on disk.
pub(crate) fn root() -> PathBuf {
    let root =
        std::env::var_os("TOOLCELL_TESTS_DIR").map_or_else(|| PathBuf::from("/var/tmp/toolcell-tests"), PathBuf::from);
    DirBuilder::new().recursive(true).mode(0o755).create(&root).expect("the suite's directory can be made");
    root
}

/// A fresh directory that other users can pass through.
pub(crate) fn fresh_dir() -> TempDir {
    let dir = tempfile::Builder::new().prefix("t").rand_bytes(6).tempdir_in(root()).expect("a fresh directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o711)).expect("its mode can be set");
    dir
}

/// A fresh directory that other users can pass through, with a copy of the program that they can run.
///
/// # Panics
/// If it cannot be made.
#[must_use]
pub fn open_dir() -> (TempDir, PathBuf) {
    let dir = fresh_dir();
    let program = dir.path().join("toolcell");
    std::fs::copy(toolcell_path(), &program).expect("the program can be copied");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    (dir, program)
}

/// Where skips are counted.
pub(crate) fn skips_file() -> PathBuf {
    root().join("skips")
}

/// The interpreter with the independent verifiers.
#[must_use]
pub fn venv_python() -> PathBuf {
    target_dir().join("venv/bin/python")
}

/// The build output, found from the running test binary.
pub(crate) fn target_dir() -> PathBuf {
    let exe = std::env::current_exe().expect("the test binary has a path");
    let deps = exe.parent().and_then(Path::parent).and_then(Path::parent);
    deps.map_or_else(|| workspace_root().join("target"), Path::to_path_buf)
}

/// A range of 65,536 user ids that no other running test has; given back when dropped or when the process ends.
#[derive(Debug)]
pub(crate) struct UidRange {
    base: u32,
    _lock: Flock<File>,
}

impl UidRange {
    /// Takes the first free one.
    pub(crate) fn take() -> Self {
        let dir = root().join("uids");
        std::fs::create_dir_all(&dir).expect("the directory of ranges can be made");
        for n in 0..RANGES {
            // The one above is for a second instance beside, as a trial of `doctor` is one.
            let base = first_uid() + n * 2 * RANGE;
            if is_somebody_s(base) {
                continue;
            }
            let file = File::create(dir.join(n.to_string())).expect("a range's lock file opens");
            if let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                return Self { base, _lock: lock };
            }
        }
        panic!("{RANGES} user id ranges are taken: are that many tests running?");
    }

    /// Its first id.
    pub(crate) fn base(&self) -> u32 {
        self.base
    }
}

/// Whether an instance that is none of this suite's has the range, or has left its lock: another suite's, with a directory
/// of its own, or one that somebody started by hand.
fn is_somebody_s(base: u32) -> bool {
    Path::new("/run/toolcell/uids").join(base.to_string()).exists()
        || Process::all().iter().any(|process| in_range(base, process.uid))
}

fn first_uid() -> u32 {
    let named = std::env::var("TOOLCELL_TESTS_FIRST_UID").ok();
    named.map_or(FIRST_UID, |id| id.parse().expect("TOOLCELL_TESTS_FIRST_UID is a user id"))
}

/// Whether an id lies in the range that starts at `base`.
pub(crate) fn in_range(base: u32, uid: u32) -> bool {
    uid >= base && uid - base < RANGE
}
