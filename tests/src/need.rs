//! What a test needs from the machine. A missing need skips the test, counted in a file; under
//! `TOOLCELL_TESTS_MUST_RUN=1` it fails it.

use std::io::Write as _;
use std::path::Path;

use crate::{cgroup_roots, place};

/// Something that not every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// To be started as root on cgroup v1, the only way that this version runs cells.
    RootOnCgroupV1,
    /// A program in PATH.
    Tool(&'static str),
    /// A file or device, like `/dev/fuse`.
    File(&'static str),
    /// The Python environment that `tests/run` makes under `target/venv`.
    PythonVerifiers,
}

impl Need {
    fn is_there(self) -> bool {
        match self {
            Self::RootOnCgroupV1 => {
                nix::unistd::geteuid().is_root()
                    && ["memory", "pids", "cpu"].iter().all(|name| cgroup_roots().iter().any(|root| root.has(name)))
            }
            Self::Tool(name) => std::env::var_os("PATH")
                .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file())),
            Self::File(path) => Path::new(path).exists(),
            Self::PythonVerifiers => place::venv_python().is_file(),
        }
    }
}

/// Whether one of the needs is missing; then the skip is counted.
///
/// # Panics
/// When something is missing and `TOOLCELL_TESTS_MUST_RUN=1`.
#[must_use]
pub fn missing(test: &str, needs: &[Need]) -> bool {
    let Some(first) = needs.iter().find(|need| !need.is_there()) else {
        return false;
    };
    let must_run = std::env::var_os("TOOLCELL_TESTS_MUST_RUN").is_some_and(|value| value == "1");
    assert!(!must_run, "{test} needs {first:?}, and TOOLCELL_TESTS_MUST_RUN=1 makes a skip a failure");
    count(&place::skips_file(), test, *first);
    true
}

fn count(file: &Path, test: &str, need: Need) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or(test).to_owned();
    let mut out = std::fs::OpenOptions::new().create(true).append(true).open(file).expect("the file of skips opens");
    writeln!(out, "{name}: skipped, needs {need:?}").expect("the skip is written");
}
