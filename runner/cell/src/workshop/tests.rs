use std::path::PathBuf;

use super::*;

fn control_behind(error: &CgroupError) -> Option<ControlId> {
    match group_fault(error) {
        LaunchFault::Control { id, detail, remedy } => {
            assert!(!detail.is_empty() && !remedy.is_empty());
            Some(id)
        }
        LaunchFault::Stage { stage, .. } => {
            assert_eq!(stage, "cgroups");
            None
        }
        other @ (LaunchFault::BadPlan { .. } | LaunchFault::Mount { .. } | LaunchFault::Killed { .. }) => {
            panic!("{other:?}")
        }
    }
}

#[test]
fn a_limit_that_the_kernel_does_not_take_is_a_control_that_does_not_hold() {
    let dir = "/sys/fs/cgroup/memory/toolcell/i/cell-1";
    for (file, control) in [
        ("memory.limit_in_bytes", ControlId::CgroupMemory),
        ("memory.swap.max", ControlId::CgroupMemory),
        ("cpu.cfs_quota_us", ControlId::CgroupCpu),
        ("cpu.max", ControlId::CgroupCpu),
        ("pids.max", ControlId::CgroupPids),
    ] {
        let path = PathBuf::from(dir).join(file);
        let source = std::io::Error::from_raw_os_error(nix::libc::EINVAL);
        let error = CgroupError::Access { action: "write", path, source };
        assert_eq!(control_behind(&error), Some(control), "{error}");
    }
}

#[test]
fn a_group_that_cannot_be_made_is_a_step_that_failed() {
    let path = PathBuf::from("/sys/fs/cgroup/memory/toolcell/i/cell-1");
    let full = || std::io::Error::from_raw_os_error(nix::libc::ENOSPC);
    let error = CgroupError::Access { action: "make", path, source: full() };
    assert_eq!(control_behind(&error), None, "{error}");
}
