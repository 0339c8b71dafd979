//! What the launcher is given when it takes over.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Everything the launcher holds from its start.
#[derive(Debug)]
pub struct LauncherConfig {
    /// SOCK_SEQPACKET socket to the daemon.
    pub daemon: OwnedFd,
    /// pidfd of the daemon, a child of this process.
    pub daemon_pidfd: OwnedFd,
    /// pidfd of the signer, a child of this process.
    pub signer_pidfd: OwnedFd,
    /// Locks that live as long as the launcher.
    pub locks: Vec<OwnedFd>,
    /// Host ids for cells.
    pub ids: crate::CellIds,
    /// Whether the launcher is an ordinary user's, privileged in a user namespace of its own and nowhere else.
    pub is_rootless: bool,
    /// Name of the instance; names its cgroups.
    pub instance: String,
    /// Parent of the instance's group, relative to the top of each hierarchy: what [`crate::settle_groups`] chose. None
    /// where no group may be made: cells then lack the controls that need one.
    pub cgroup_parent: Option<String>,
    /// Controls that the operator accepted as unavailable.
    pub accept_unavailable: Vec<toolcell_types::ControlId>,
    /// Whether calls may have controls switched off (ablation mode).
    pub is_ablation: bool,
    /// Directories that no mount may be, lie under or contain.
    pub deny_paths: Vec<PathBuf>,
    /// Files to remove at the end.
    pub unlink: Vec<PathBuf>,
    /// The runtime directory; the launcher keeps an empty directory in it to attach its /dev template to.
    pub runtime_dir: PathBuf,
}
