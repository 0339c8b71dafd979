//! Joins the cell's groups, if it was not born in them.

use std::os::fd::OwnedFd;

use crate::record::{At as _, Op, Stage, StageError};

/// Writes `0`, which is "the writing thread", to each file: none where the process was cloned into its group. A single-threaded process that moves itself takes
/// 0.3 ms; a parent that moves it through `cgroup.procs` waits for a grace period of up to 15 ms.
pub(super) fn join(tasks: &[OwnedFd]) -> Result<(), StageError> {
    for (index, file) in tasks.iter().enumerate() {
        let _written = rustix::io::write(file, b"0").at_item(Stage::Cgroups, Op::Join, index)?;
    }
    Ok(())
}
