//! What a test needs from the machine. A missing need skips the test, counted in a file; under
//! `TOOLCELL_TESTS_MUST_RUN=1` it fails it.

use std::io::Write as _;
use std::path::Path;

use crate::{CgroupRoot, cgroup_roots, place};

/// Something that not every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// To be started as root on a machine whose cgroups, of either version, have the controllers for cells.
    Root,
    /// The same with cgroup version 2. The test machine of the suite itself may be another: there these tests are left
    /// to the virtual machine, which runs them (see the module `vm`), and so are never a failure here.
    UnifiedCgroups,
    /// To be alone on a machine that is the suite's own, whose clock and swap it may change: the virtual machine says so
    /// with `TOOLCELL_TESTS_OWN_MACHINE=1`. Elsewhere these tests are left to it.
    OwnMachine,
    /// To be started as root, where ordinary users can be made; or as one. They may have user namespaces.
    OrdinaryUsers,
    /// Ordinary users with subordinate ids, as only root can make them.
    SubordinateIds,
    /// Docker, with an engine that answers.
    ContainerEngine,
    /// A program in PATH.
    Tool(&'static str),
    /// A file or device, like `/dev/fuse`.
    File(&'static str),
    /// The Python environment that `tests/run` makes under `target/venv`.
    PythonVerifiers,
}

impl Need {
    /// Whether this machine has it.
    #[must_use]
    pub fn is_there(self) -> bool {
        match self {
            Self::Root => can_run_cells(|_root| true),
            Self::UnifiedCgroups => can_run_cells(CgroupRoot::is_unified),
            Self::OwnMachine => {
                std::env::var_os("TOOLCELL_TESTS_OWN_MACHINE").is_some_and(|value| value == "1")
                    && can_run_cells(|_root| true)
            }
            Self::OrdinaryUsers => {
                let can_be_made =
                    || ["useradd", "newuidmap", "newgidmap"].into_iter().all(|name| Self::Tool(name).is_there());
                (!nix::unistd::geteuid().is_root() || can_be_made())
                    && std::fs::read_to_string("/proc/sys/user/max_user_namespaces")
                        .is_ok_and(|text| text.trim() != "0")
            }
            Self::SubordinateIds => nix::unistd::geteuid().is_root() && Self::OrdinaryUsers.is_there(),
            Self::ContainerEngine => {
                Self::Tool("docker").is_there()
                    && crate::run(crate::command("docker").args(["version", "--format", "{{.Server.Version}}"])).code
                        == 0
            }
            Self::Tool(name) => std::env::var_os("PATH")
                .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file())),
            Self::File(path) => Path::new(path).exists(),
            Self::PythonVerifiers => place::venv_python().is_file(),
        }
    }
}

fn can_run_cells(of_kind: impl Fn(&CgroupRoot) -> bool) -> bool {
    let roots: Vec<CgroupRoot> = cgroup_roots().into_iter().filter(of_kind).collect();
    let has = |name: &&str| roots.iter().any(|root| root.has(name));
    nix::unistd::geteuid().is_root() && ["memory", "pids", "cpu"].iter().all(has)
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
    if matches!(first, Need::UnifiedCgroups | Need::OwnMachine) {
        return true;
    }
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
