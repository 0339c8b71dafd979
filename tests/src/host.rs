//! The host as the kernel shows it: mounts and cgroup hierarchies.

use std::path::{Path, PathBuf};

/// One mounted cgroup v1 hierarchy.
#[derive(Debug, Clone)]
pub struct CgroupRoot {
    /// Where it is mounted.
    pub path: PathBuf,
    options: Vec<String>,
}

impl CgroupRoot {
    /// Whether it carries that controller.
    #[must_use]
    pub fn has(&self, controller: &str) -> bool {
        self.options.iter().any(|option| option == controller)
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
        kind.starts_with("cgroup")
            .then(|| CgroupRoot { path, options: options.split(',').map(str::to_owned).collect() })
    });
    roots.collect()
}

/// The lines of a process' mountinfo; none if it is gone.
#[must_use]
pub fn mount_lines(pid: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
