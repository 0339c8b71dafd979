//! Who counts a tool's starts without asking us: one pipe per call, fed with a few bytes, of which each start takes one.
//!
//! Mounts are read-only, but what is read from a pipe is gone, also in a read-only mount.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

use nix::libc::O_NONBLOCK;
use nix::sys::stat::Mode;
use tempfile::TempDir;

/// More than one start too many would be seen as well.
const FED: usize = 4;
/// Where a cell sees the pipes.
const INSIDE: &str = "/witness";

/// The pipes of the calls of one lane.
#[derive(Debug)]
pub(super) struct Witness {
    dir: TempDir,
    pipes: BTreeMap<String, File>,
}

impl Witness {
    /// Without any pipe yet.
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        Self { dir, pipes: BTreeMap::new() }
    }

    /// Makes the pipe of a call.
    pub(super) fn feed(&mut self, call_id: &str) {
        let path = self.dir.path().join(call_id);
        nix::unistd::mkfifo(&path, Mode::from_bits_truncate(0o644)).unwrap();
        // Whatever the umask is: the tool is nobody's owner.
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let mut pipe = OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(&path).unwrap();
        pipe.write_all(&[b'.'; FED]).unwrap();
        assert!(self.pipes.insert(call_id.to_owned(), pipe).is_none(), "{call_id} is used once");
    }

    /// The folder on the host, and where it has to be inside.
    pub(super) fn mount(&self) -> (String, &'static str) {
        (self.dir.path().to_string_lossy().into_owned(), INSIDE)
    }

    /// The shell's words that take a byte of that call and go on only if there was one.
    pub(super) fn words(call_id: &str) -> String {
        format!("head -c 1 {INSIDE}/{call_id} > /dev/null || exit 99")
    }

    /// How often the tool of that call was started. Nothing of it may run any more.
    pub(super) fn starts(&self, call_id: &str) -> usize {
        let mut pipe = &self.pipes[call_id];
        let mut left = Vec::new();
        match pipe.read_to_end(&mut left) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => panic!("a pipe that we hold open has no end: {other:?}"),
        }
        pipe.write_all(&left).unwrap();
        FED - left.len()
    }
}
