//! Limits per process: second lines to the groups, and those that no group has.

use rustix::process::{Resource, Rlimit};
use toolcell_types::Limits;

use crate::record::{At as _, Op, Stage, StageError};

/// What is set, by the name that /proc/PID/limits gives it. Soft and hard are equal, so that nothing can be raised.
///
/// CPU is a second line to the cell's own processor clock: a whole second later, and per process. Core dumps, locked
/// memory and message queues are host resources that a tool has no use for.
pub(crate) fn wanted(limits: &Limits) -> [(Resource, &'static str, u64); 7] {
    let cpu_seconds = limits.cpu_ms.div_ceil(1000).saturating_add(1);
    [
        (Resource::Nofile, "Max open files", limits.open_files),
        (Resource::Fsize, "Max file size", limits.file_bytes),
        (Resource::Core, "Max core file size", 0),
        (Resource::Cpu, "Max cpu time", cpu_seconds),
        (Resource::Memlock, "Max locked memory", 64 * 1024),
        (Resource::Msgqueue, "Max msgqueue size", 64 * 1024),
        (Resource::Sigpending, "Max pending signals", 1024),
    ]
}

/// Sets them. A hard limit of the launcher's own that is lower stays in force and shows at reading back.
pub(super) fn apply(limits: &Limits) -> Result<(), StageError> {
    for (index, (resource, _, value)) in wanted(limits).into_iter().enumerate() {
        let limit = Rlimit { current: Some(value), maximum: Some(value) };
        rustix::process::setrlimit(resource, limit).at_item(Stage::Limits, Op::Rlimit, index)?;
    }
    Ok(())
}
