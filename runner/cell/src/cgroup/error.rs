//! Why groups cannot be used, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why groups cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// Neither version has the controllers that a cell needs.
    #[error(
        "this machine's cgroups have no memory, cpu and pids controllers for cells: version 1 lacks {}, version 2 {}",
        v1_lacks.join(", "),
        v2_state(v2_lacks.as_deref())
    )]
    NoControllers {
        /// Controllers that no v1 hierarchy carries.
        v1_lacks: Vec<&'static str>,
        /// Controllers that the mounted v2 hierarchy does not offer; none if there is no such mount.
        v2_lacks: Option<Vec<&'static str>>,
    },
    /// A group cannot hand its controllers down to the groups below it (cgroups(7), "Cgroups v2 controllers").
    #[error("cannot enable {} for the groups below {path}: {why}", controllers.join(", "))]
    Enable {
        /// The group.
        path: PathBuf,
        /// What was to be enabled.
        controllers: Vec<&'static str>,
        /// What that errno means here.
        why: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
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
    /// A counter is no number.
    #[error("{path} holds {got:?}, expected a number")]
    NotANumber {
        /// Which file.
        path: PathBuf,
        /// What is there.
        got: String,
    },
    /// This instance has no groups, and was asked for something that only a group knows.
    #[error("this instance has no cgroups")]
    Absent,
}

fn v2_state(lacks: Option<&[&'static str]>) -> String {
    lacks.map_or_else(|| "is not mounted".to_owned(), |lacks| format!("lacks {}", lacks.join(", ")))
}

impl CgroupError {
    /// What the operator can do about it, one sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoControllers { v2_lacks: None, .. } => {
                "mount cgroup version 2 (mount -t cgroup2 none /sys/fs/cgroup), or the version 1 controllers memory, \
                 cpu, cpuacct, pids and freezer"
            }
            Self::NoControllers { v2_lacks: Some(_), .. } => {
                "let one version have them all: boot without cgroup_no_v1= and cgroup_disable= to choose by what is \
                 mounted, or mount the version 1 controllers memory, cpu, cpuacct, pids and freezer; in a container, \
                 let the host delegate them"
            }
            Self::Enable { source, .. } => match source.raw_os_error() {
                Some(nix::libc::EBUSY) => {
                    "move those processes into a group of their own, start toolcell as the only process of a group \
                     (a systemd service with Delegate=yes, a container's first process), or name a group with \
                     --cgroup-parent"
                }
                Some(nix::libc::ENOENT) => {
                    "enable them in cgroup.subtree_control of every group above, or name another group with \
                     --cgroup-parent"
                }
                _ => "start as root, with the cgroup file system writable and the group delegated to toolcell",
            },
            Self::Access { source, .. } if source.raw_os_error() == Some(nix::libc::EROFS) => {
                if super::is_of_version_1() {
                    "it is mounted read-only, as containers have it: make a group per controller on the host, as its root \
                     (mkdir /sys/fs/cgroup/memory/toolcell-container), and start the container with it in the place of its own: \
                     -v /sys/fs/cgroup/memory/toolcell-container:/sys/fs/cgroup/memory, and the same for cpu, cpuacct, pids and \
                     freezer"
                } else {
                    "it is mounted read-only, as containers have it: make a group on the host, as its root (mkdir \
                     /sys/fs/cgroup/toolcell-container), and start the container with it in the place of its own: --cgroupns host \
                     -v /sys/fs/cgroup/toolcell-container:/sys/fs/cgroup"
                }
            }
            Self::Access { source, .. }
                if matches!(source.raw_os_error(), Some(nix::libc::EACCES | nix::libc::EPERM)) =>
            {
                "give the group and those below it to the user who starts toolcell, as root, in a container on the host: chown -R \
                 USER GROUP; if it is an empty one that an earlier toolcell of root's left, remove it there: rmdir GROUP"
            }
            Self::Access { .. } | Self::NotANumber { .. } | Self::Absent => {
                "start as root with the cgroup controllers memory, cpu and pids writable; on version 1 cpuacct and \
                 freezer as well"
            }
        }
    }

    /// The errno behind it.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Self::Access { source, .. } | Self::Enable { source, .. } => {
                source.raw_os_error().unwrap_or(nix::libc::EIO)
            }
            Self::NoControllers { .. } | Self::Absent => nix::libc::ENODEV,
            Self::NotANumber { .. } => nix::libc::EPROTO,
        }
    }
}
