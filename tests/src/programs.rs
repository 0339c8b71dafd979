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

/// The directory of the compiled probes, each by its name without `.c`, for machines that have no compiler.
///
/// # Panics
/// If one does not compile.
#[must_use]
pub(crate) fn compiled_probes() -> PathBuf {
    compile_folder("tests/probes", "probes", &["-s"])
}

fn compile_all() -> PathBuf {
    compile_folder("tests/programs", "programs", &[])
}

fn compile_folder(folder: &str, name: &str, options: &[&str]) -> PathBuf {
    let sources = sources(folder);
    let mut hasher = DefaultHasher::new();
    for source in &sources {
        std::fs::read(source).expect("a source can be read").hash(&mut hasher);
    }
    let done = place::root().join(format!("{name}-{:016x}", hasher.finish()));
    let lock = File::create(place::root().join(format!("{name}.lock"))).expect("the lock file opens");
    let _held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_file, errno)| errno).expect("the lock is had");
    if !done.is_dir() {
        let fresh = tempfile::tempdir_in(place::root()).expect("a fresh directory").keep();
        std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755)).expect("its mode can be set");
        for source in &sources {
            compile(source, &fresh, options);
        }
        std::fs::rename(&fresh, &done).expect("the directory gets its name");
    }
    done
}

fn sources(folder: &str) -> Vec<PathBuf> {
    let dir = workspace_root().join(folder);
    let entries = std::fs::read_dir(dir).expect("the programs' directory can be listed");
    let mut sources: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    sources.sort();
    sources
}

fn compile(source: &Path, into: &Path, options: &[&str]) {
    let out = into.join(source.file_stem().expect("a source has a name"));
    let mut gcc = command("gcc");
    gcc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static"])
        .args(options)
        .arg("-o")
        .arg(&out)
        .arg(source);
    assert_eq!(run(&mut gcc).expect_code(0).code, 0);
}
