//! What a cell has instead where a control is switched off (ablation mode).

use std::os::fd::{AsFd as _, OwnedFd};

use nix::sched::CloneFlags;
use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};
use toolcell_sys::{MountAttr, set_mount_attributes};
use toolcell_types::plan::LaunchFault;
use toolcell_types::{ControlId, ControlSet};

use super::io_fault;
use crate::cgroup::Instance;
use crate::stages::make_trial_dir;

/// Whether these controls can be switched off here.
pub(super) fn may_be(ablated: ControlSet, is_ablation: bool, groups: &Instance) -> Result<(), LaunchFault> {
    if !ablated.is_empty() && !is_ablation {
        return Err(LaunchFault::BadPlan { detail: "this launcher switches no control off".to_owned() });
    }
    if ablated.has(ControlId::NamespacePid) && matches!(groups, Instance::Absent) {
        return Err(LaunchFault::Control {
            id: ControlId::NamespacePid,
            detail: "without a group only the pid namespace ends the tree, so that it cannot be switched off"
                .to_owned(),
            remedy: "give the instance cgroups, or leave namespace.pid on".to_owned(),
        });
    }
    Ok(())
}

/// All that clone3 can give but those that are off.
pub(super) fn namespaces_but(off: ControlSet) -> CloneFlags {
    let all = [
        (ControlId::NamespaceUser, CloneFlags::CLONE_NEWUSER),
        (ControlId::NamespaceMount, CloneFlags::CLONE_NEWNS),
        (ControlId::NamespacePid, CloneFlags::CLONE_NEWPID),
        (ControlId::NamespaceNet, CloneFlags::CLONE_NEWNET),
        (ControlId::NamespaceIpc, CloneFlags::CLONE_NEWIPC),
        (ControlId::NamespaceUts, CloneFlags::CLONE_NEWUTS),
    ];
    all.into_iter().filter(|(id, _)| !off.has(*id)).fold(CloneFlags::empty(), |flags, (_, flag)| flags | flag)
}

/// Where Landlock is tried, if the cell cannot make a file system: that takes a mount namespace of its own.
pub(super) fn trial_dir(off: ControlSet) -> Result<Option<OwnedFd>, LaunchFault> {
    let made = off.has(ControlId::NamespaceMount).then(make_trial_dir).transpose();
    made.map_err(|errno| io_fault("landlock", "make a folder to try it in", &errno.into()))
}

/// The machine's own folder of this name as a detached tree; what is mounted below comes along only where the kernel does
/// not let it be left out (open_tree(2)). /dev alone has device nodes; /proc is made read-only once it has been written to.
pub(super) fn machines_own(path: &str, is_dev: bool) -> std::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let (tree, is_whole) = match open_tree(CWD, path, flags) {
        Err(rustix::io::Errno::INVAL) => (open_tree(CWD, path, flags | OpenTreeFlags::AT_RECURSIVE)?, true),
        other => (other?, false),
    };
    let attr = MountAttr { read_only: is_dev, no_suid: true, no_dev: !is_dev, no_exec: true, private: true };
    set_mount_attributes(tree.as_fd(), attr, is_whole)?;
    Ok(tree)
}
