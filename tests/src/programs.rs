//! The hostile and the plain programs under `tests/programs`, compiled once, statically, so that they need nothing
//! from an image and start as fast as a program can.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::fcntl::{Flock, FlockArg};

use crate::command::{command, run, workspace_root};
use crate::place;

/// Where a call sees them.
pub const PROGRAMS_INSIDE: &str = "/programs";

/// The path of a program inside a cell.
#[must_use]
pub fn program_inside(name: &str) -> String {
    format!("{PROGRAMS_INSIDE}/{name}")
}

/// The path of a program on the host.
#[must_use]
pub fn program_on_host(name: &str) -> PathBuf {
    programs_dir().join(name)
}

/// The directory of the compiled programs: `TOOLCELL_TESTS_PROGRAMS`, else they are compiled if their sources have
/// changed.
///
/// # Panics
/// If one does not compile.
#[must_use]
pub fn programs_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    let given = || std::env::var_os("TOOLCELL_TESTS_PROGRAMS").map(PathBuf::from);
    DIR.get_or_init(|| given().unwrap_or_else(compile_all)).clone()
}

fn compile_all() -> PathBuf {
    let sources = sources();
    let mut hasher = DefaultHasher::new();
    for source in &sources {
        std::fs::read(source).expect("a source can be read").hash(&mut hasher);
    }
    let done = place::root().join(format!("programs-{:016x}", hasher.finish()));
    let lock = File::create(place::root().join("programs.lock")).expect("the lock file opens");
    let _held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_file, errno)| errno).expect("the lock is had");
    if !done.is_dir() {
        let fresh = tempfile::tempdir_in(place::root()).expect("a fresh directory").keep();
        std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755)).expect("its mode can be set");
        for source in &sources {
            compile(source, &fresh);
        }
        std::fs::rename(&fresh, &done).expect("the directory gets its name");
    }
    done
}

fn sources() -> Vec<PathBuf> {
    let dir = workspace_root().join("tests/programs");
    let entries = std::fs::read_dir(dir).expect("the programs' directory can be listed");
    let mut sources: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    sources.sort();
    sources
}

fn compile(source: &Path, into: &Path) {
    let out = into.join(source.file_stem().expect("a source has a name"));
    let mut gcc = command("gcc");
    gcc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o"]).arg(&out).arg(source);
    assert_eq!(run(&mut gcc).expect_code(0).code, 0);
}
