//! The host as the kernel shows it: mounts and cgroup hierarchies.

use std::path::{Path, PathBuf};

/// One mounted cgroup hierarchy.
#[derive(Debug, Clone)]
pub struct CgroupRoot {
    /// Where it is mounted.
    pub path: PathBuf,
    is_unified: bool,
    controllers: Vec<String>,
}

impl CgroupRoot {
    /// Whether it carries that controller.
    #[must_use]
    pub fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|has| has == controller)
    }

    /// Whether it is the one tree of version 2.
    #[must_use]
    pub fn is_unified(&self) -> bool {
        self.is_unified
    }
}

/// Every mounted cgroup hierarchy, v1 and v2.
#[must_use]
pub fn cgroup_roots() -> Vec<CgroupRoot> {
    let lines = mount_lines("self");
    let roots = lines.iter().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let kind = right.next()?;
        let options = right.nth(1)?;
        let path = Path::new(left.split(' ').nth(4)?).to_path_buf();
        let words = |text: &str| text.split([',', ' ', '\n']).map(str::to_owned).collect();
        let controllers = match kind {
            "cgroup" => words(options),
            "cgroup2" => words(&std::fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default()),
            _ => return None,
        };
        Some(CgroupRoot { path, is_unified: kind == "cgroup2", controllers })
    });
    roots.collect()
}

/// Every group of that name, in every hierarchy and wherever in it.
#[must_use]
pub fn groups_named(name: &str) -> Vec<PathBuf> {
    cgroup_roots().iter().flat_map(|root| named_below(&root.path, name)).collect()
}

fn named_below(dir: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name() == name {
            found.push(entry.path());
        } else {
            found.extend(named_below(&entry.path(), name));
        }
    }
    found
}

/// The running kernel's version, as in 6.1.
///
/// # Panics
/// If the kernel does not say.
#[must_use]
pub fn kernel_version() -> (u32, u32) {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel has a release");
    let mut numbers = text.split(['.', '-']).filter_map(|word| word.parse().ok());
    (numbers.next().expect("a major number"), numbers.next().expect("a minor number"))
}

/// The lines of a process' mountinfo; none if it is gone.
#[must_use]
pub fn mount_lines(pid: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
