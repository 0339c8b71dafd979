//! Limits per process: second lines to the groups, and those that no group has.

use rustix::process::{Resource, Rlimit};
use toolcell_types::Limits;

use crate::record::{At as _, Op, Stage, StageError};

/// A limit per process as it is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) resource: Resource,
    /// The name that /proc/PID/limits gives it.
    pub(crate) label: &'static str,
    pub(crate) soft: u64,
    pub(crate) hard: u64,
}

/// What is set. Soft and hard are equal but for the stack, so that nothing else can be raised.
///
/// CPU is a second line to the cell's own processor clock, per process, and far behind it: the kernel counts this one by
/// ticks, which for a process that runs in short turns can be several times what it really used. The core limit is 1:
/// with 0 the kernel still starts a core handler named by a pipe in core_pattern, as root and on the host; with 1 it
/// does not (core(5)), and no file of one byte is written either. The stack may grow to what memory there is.
///
/// Where no group limits the cell there are two more, and that of processor time, which is all there is then, is close. Processes are counted per user within the cell's own user namespace
/// (Linux 5.14). Memory is what one process may have as private and writable: not RLIMIT_AS, under which runtimes that
/// reserve addresses without using them (Node, Go, Java) do not start.
pub(crate) fn wanted(limits: &Limits, is_ungrouped: bool) -> Vec<Wanted> {
    let cpu_seconds = limits.cpu_ms.div_ceil(1000);
    let cpu_seconds =
        if is_ungrouped { cpu_seconds.saturating_add(1) } else { cpu_seconds.saturating_mul(4).saturating_add(10) };
    let equal = |resource, label, value| Wanted { resource, label, soft: value, hard: value };
    let stack_hard = limits.memory_bytes.max(STACK_BYTES);
    let mut wanted = vec![
        equal(Resource::Nofile, "Max open files", limits.open_files),
        equal(Resource::Fsize, "Max file size", limits.file_bytes),
        equal(Resource::Core, "Max core file size", 1),
        equal(Resource::Cpu, "Max cpu time", cpu_seconds),
        equal(Resource::Memlock, "Max locked memory", 64 * 1024),
        equal(Resource::Msgqueue, "Max msgqueue size", 64 * 1024),
        equal(Resource::Sigpending, "Max pending signals", 1024),
        equal(Resource::Nice, "Max nice priority", 0),
        equal(Resource::Rtprio, "Max realtime priority", 0),
        Wanted { resource: Resource::Stack, label: "Max stack size", soft: STACK_BYTES, hard: stack_hard },
    ];
    if is_ungrouped {
        wanted.extend([
            equal(Resource::Nproc, "Max processes", limits.pids),
            equal(Resource::Data, "Max data size", limits.memory_bytes),
        ]);
    }
    wanted
}

/// The usual stack of the first thread, and what a thread gets that asks for nothing.
const STACK_BYTES: u64 = 8 * 1024 * 1024;

/// Sets them. A hard limit of the launcher's own that is lower stays in force and shows at reading back.
pub(super) fn apply(limits: &Limits, is_ungrouped: bool) -> Result<(), StageError> {
    for (index, wanted) in wanted(limits, is_ungrouped).into_iter().enumerate() {
        let own = rustix::process::getrlimit(wanted.resource).maximum;
        let at_most = |value: u64| Some(own.map_or(value, |own| value.min(own)));
        let limit = Rlimit { current: at_most(wanted.soft), maximum: at_most(wanted.hard) };
        rustix::process::setrlimit(wanted.resource, limit).at_item(Stage::Limits, Op::Rlimit, index)?;
    }
    Ok(())
}
