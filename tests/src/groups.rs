//! Groups of the machine's that a test makes for others: one at the top of each hierarchy that cells need.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::host::cgroup_roots;

/// Begins every name.
pub(crate) const PREFIX: &str = "toolcell-tests-";
/// What version 1 has in trees of their own.
const CONTROLLERS: [&str; 5] = ["memory", "cpu", "cpuacct", "pids", "freezer"];
/// Groups of the machine's, one per hierarchy, that go with it.
#[derive(Debug)]
pub struct Groups(String);

impl Groups {
    /// A name that nobody has, of groups that are to be made.
    #[must_use]
    pub fn name() -> Self {
        Self(fresh_name())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes them at the top of each hierarchy that cells need.
    ///
    /// # Panics
    /// If one cannot be made.
    #[must_use]
    pub fn make(&self) -> Vec<PathBuf> {
        make_groups(&self.0)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let stays: Vec<PathBuf> = groups(&self.0).into_iter().filter(|group| !is_removed(group)).collect();
        assert!(std::thread::panicking() || stays.is_empty(), "left: {stays:#?}");
    }
}

pub(crate) fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The groups of that name: one per hierarchy that cells need.
pub(crate) fn groups(name: &str) -> Vec<PathBuf> {
    let roots = cgroup_roots();
    let is_needed = |root: &&crate::CgroupRoot| CONTROLLERS.iter().any(|controller| root.has(controller));
    let version_1 = roots.iter().any(|root| !root.is_unified() && root.has("memory"));
    let needed = roots.iter().filter(is_needed).filter(|root| root.is_unified() != version_1);
    // In a container one may be bound over another at the same path.
    let paths: std::collections::BTreeSet<PathBuf> = needed.map(|root| root.path.join(name)).collect();
    paths.into_iter().collect()
}

/// The names of all that any test has made.
pub(crate) fn named_groups() -> Vec<String> {
    let tops = cgroup_roots().into_iter().filter_map(|root| fs::read_dir(root.path).ok()).flatten();
    let names = tops.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

pub(crate) fn make_groups(name: &str) -> Vec<PathBuf> {
    let groups = groups(name);
    for group in &groups {
        fs::create_dir(group).unwrap_or_else(|error| panic!("{}: {error}", group.display()));
    }
    groups
}

/// Removes a group and those below; a member that was killed with its container may take a moment to be gone.
pub(crate) fn is_removed(group: &Path) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        remove_tree(group);
        if !group.exists() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Of a group's files none can be removed, and none need be.
fn remove_tree(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    // Busy, or gone: the caller looks.
    drop(fs::remove_dir(group));
}
