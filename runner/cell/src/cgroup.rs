//! One noun for control groups: make, limit, read back, kill, count, remove. What differs between cgroup versions is
//! in here and nowhere else; so far that is version 1, whose controllers each have a tree of their own.
//!
//! A thin module of our own instead of cgroups-rs: the crate cannot kill on v1, cannot address another root than
//! /sys/fs/cgroup, reads neither pids.events nor the user and system parts of cpuacct, swallows write errors of
//! further attributes, and brings a D-Bus client into the privileged process (see ARCHITECTURE.md).

mod files;
mod group;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use toolcell_types::{CellId, Limits};

use self::files::{access, mismatch, read, remove_dir, write_text};
use self::group::kill_member;
pub(crate) use self::group::{Cgroup, Counters, ReadBack};

/// Why groups cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// No v1 hierarchy has this controller.
    #[error("no cgroup v1 hierarchy with the {controller} controller is mounted")]
    NoController {
        /// Which one.
        controller: &'static str,
    },
    /// A file or directory of the hierarchy could not be used.
    #[error("cannot {action} {path}")]
    Access {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A limit reads back as something else than was written.
    #[error("{path} reads back as {got}, expected {wanted}")]
    Mismatch {
        /// Which file.
        path: PathBuf,
        /// What was written.
        wanted: String,
        /// What is there.
        got: String,
    },
    /// A counter is no number.
    #[error("{path} holds {got:?}, expected a number")]
    NotANumber {
        /// Which file.
        path: PathBuf,
        /// What is there.
        got: String,
    },
}

impl CgroupError {
    /// The errno behind it.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Self::Access { source, .. } => source.raw_os_error().unwrap_or(nix::libc::EIO),
            Self::NoController { .. } => nix::libc::ENODEV,
            Self::Mismatch { .. } | Self::NotANumber { .. } => nix::libc::EPROTO,
        }
    }
}

/// A controller that a cell needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    Memory,
    Cpu,
    Cpuacct,
    Pids,
    Freezer,
}

impl Controller {
    const ALL: [Self; 5] = [Self::Memory, Self::Cpu, Self::Cpuacct, Self::Pids, Self::Freezer];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Pids => "pids",
            Self::Freezer => "freezer",
        }
    }
}

/// Group of all instances below each hierarchy's root, unless the operator names another.
const PARENT: &str = "toolcell";

/// Kills and removes what an earlier life of this instance left in its groups. Once it returns, nothing of that life
/// runs any more. For who holds the instance's lock and has not started its parts yet.
///
/// # Errors
/// [`CgroupError`]: groups cannot be used here, or something is left that cannot be killed. No cell can be had then.
pub fn sweep(parent: Option<&str>, instance: &str) -> Result<(), CgroupError> {
    Instance::open(parent, instance)?.remove()
}

/// The groups of one instance, below which each cell gets its own.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Directory of the instance per hierarchy; controllers that share a hierarchy share a directory.
    roots: Vec<(Vec<Controller>, PathBuf)>,
}

impl Instance {
    /// Finds the hierarchies, makes the instance's group in each, and removes what an earlier life of this very
    /// instance left (its processes are killed first).
    pub(crate) fn open(parent: Option<&str>, instance: &str) -> Result<Self, CgroupError> {
        let parent = parent.unwrap_or(PARENT);
        let mounts = read(Path::new("/proc/self/mountinfo"))?;
        let mut roots: Vec<(Vec<Controller>, PathBuf)> = Vec::new();
        for controller in Controller::ALL {
            let hierarchy = hierarchy(&mounts, controller.name())
                .ok_or(CgroupError::NoController { controller: controller.name() })?;
            let path = hierarchy.join(parent).join(instance);
            match roots.iter_mut().find(|(_, known)| *known == path) {
                Some((controllers, _)) => controllers.push(controller),
                None => roots.push((vec![controller], path)),
            }
        }
        for (_, root) in &roots {
            fs::create_dir_all(root).map_err(access("make", root))?;
        }
        let opened = Self { roots };
        opened.sweep()?;
        Ok(opened)
    }

    /// Kills and removes everything below the instance's groups.
    fn sweep(&self) -> Result<(), CgroupError> {
        for (_, root) in &self.roots {
            for entry in fs::read_dir(root).map_err(access("list", root))? {
                let path = entry.map_err(access("list", root))?.path();
                if path.is_dir() {
                    tracing::info!(path = %path.display(), "removing a group that an earlier start left");
                    sweep_group(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Removes the instance's own groups; only once no cell is left.
    pub(crate) fn remove(&self) -> Result<(), CgroupError> {
        for (_, root) in &self.roots {
            remove_dir(root)?;
            // The common parent goes with the last instance; others may still use it.
            if let Some(parent) = root.parent() {
                match fs::remove_dir(parent) {
                    Ok(()) => {}
                    Err(error)
                        if matches!(
                            error.raw_os_error(),
                            Some(nix::libc::EBUSY | nix::libc::ENOTEMPTY | nix::libc::ENOENT)
                        ) => {}
                    Err(error) => return Err(access("remove", parent)(error)),
                }
            }
        }
        Ok(())
    }

    /// Makes the groups of one cell and sets its limits, each read back.
    pub(crate) fn create(&self, cell: CellId, limits: &Limits) -> Result<Cgroup, CgroupError> {
        let mut made = Cgroup::with_capacity(self.roots.len());
        let built = self.roots.iter().try_for_each(|(controllers, root)| {
            let dir = root.join(format!("cell-{cell}"));
            fs::create_dir(&dir).map_err(access("make", &dir))?;
            made.add(controllers.clone(), dir.clone());
            let members = read(&dir.join("cgroup.procs"))?;
            if members.trim().is_empty() { Ok(()) } else { mismatch(&dir.join("cgroup.procs"), "no member", &members) }
        });
        match built.and_then(|()| made.limit(limits)) {
            Ok(()) => Ok(made),
            Err(error) => {
                if let Err(second) = made.remove() {
                    tracing::warn!(error = %second, "a group of a cell that could not be made stays behind");
                }
                Err(error)
            }
        }
    }
}

/// Mount point of the v1 hierarchy with this controller, from mountinfo (proc(5)): the superblock options name it.
fn hierarchy(mountinfo: &str, controller: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (mount, superblock) = line.split_once(" - ")?;
        let mut fields = superblock.split(' ');
        let is_v1 = fields.next() == Some("cgroup");
        let has = fields.next_back().is_some_and(|options| options.split(',').any(|option| option == controller));
        (is_v1 && has).then(|| mount.split(' ').nth(4).map(PathBuf::from)).flatten()
    })
}

fn sweep_group(path: &Path) -> Result<(), CgroupError> {
    let mut group = Cgroup::with_capacity(1);
    group.add(Controller::ALL.to_vec(), path.to_owned());
    // Bounded: what cannot be killed in these rounds is in the kernel's hands, and removal says so.
    for _round in 0..200 {
        let members = group.members()?;
        for number in &members {
            if let Some(pid) = Pid::from_raw(*number) {
                kill_member(pid, &group)?;
            }
        }
        let freezer = path.join("freezer.state");
        if freezer.exists() {
            write_text(&freezer, "THAWED")?;
        }
        if members.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    group.remove()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
30 25 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct
32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,memory
";

    #[test]
    fn hierarchies_are_found_by_controller_not_by_name() {
        assert_eq!(hierarchy(MOUNTINFO, "memory"), Some(PathBuf::from("/sys/fs/cgroup/memory")));
        assert_eq!(hierarchy(MOUNTINFO, "cpuacct"), Some(PathBuf::from("/sys/fs/cgroup/cpu,cpuacct")));
        assert_eq!(hierarchy(MOUNTINFO, "pids"), None);
        assert_eq!(hierarchy(MOUNTINFO, "cpu,cpuacct"), None);
    }
}
