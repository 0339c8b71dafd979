//! The inside of a cell: what the freshly cloned child does, in order, until the tool runs.
//!
//! The order is the design. Each line's comment says why it cannot move up or down. The child never returns to the
//! launcher's code: it becomes the cell's init and ends with `_exit`. A step that fails is reported as a record.

mod capabilities;
mod cgroups;
mod exec;
mod identity;
mod landlock;
mod mounts;
mod namespaces;
mod rlimits;
mod seccomp;
mod stdio;
mod supervise;
mod tries;

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use toolcell_types::{ControlId, ControlSet, Limits};

use crate::ids::Ids;

pub(crate) use self::landlock::{Abi, best_abi, make_trial_dir};
pub(crate) use self::mounts::{
    DEV_LINKS, DEV_NODES, DEV_SHM, DevNode, MASKED_PROC, READ_ONLY_PROC, RootEntry, RootPlan, SCRATCH_MOUNTS,
};
pub(crate) use self::rlimits::wanted as wanted_rlimits;
pub(crate) use self::seccomp::{FilterSet, Filters};
use crate::record::{At as _, Op, Probes, Record, Stage, StageError};

/// User and group id of the cell's init, inside.
pub(crate) const INIT_ID: u32 = 65_533;
/// User and group id of the tool, inside.
pub(crate) const TOOL_ID: u32 = 65_534;

/// Everything a cell is made from. Built by the launcher before the clone, so that the child only takes steps.
pub(crate) struct CellSpec<'a> {
    /// Packet socket to the launcher.
    pub(crate) control: OwnedFd,
    /// Files to join the cell's groups through, open for writing; none if the process is born in its group.
    pub(crate) tasks: Vec<OwnedFd>,
    /// The root.
    pub(crate) root: RootPlan<'a>,
    /// Limits that are enforced from inside (rlimits, scratch).
    pub(crate) limits: Limits,
    /// System call filters.
    pub(crate) filters: &'a Filters,
    /// Landlock's vetted level on this kernel.
    pub(crate) landlock: Abi,
    /// The half of the plan that only this child reads.
    pub(crate) go: OwnedFd,
    /// Standard input; none is /dev/null.
    pub(crate) stdin: Option<OwnedFd>,
    /// Write end of standard output.
    pub(crate) stdout: OwnedFd,
    /// Write end of standard error.
    pub(crate) stderr: OwnedFd,
    /// Who init and tool are.
    pub(crate) ids: Ids,
    /// Whether no group limits the cell, so that limits per process are all there is.
    pub(crate) is_ungrouped: bool,
    /// Controls that are switched off, which a launcher does only in ablation mode.
    pub(crate) off: ControlSet,
    /// A folder to try making a file in, where the child itself could not make a file system of its own.
    pub(crate) trial_dir: Option<OwnedFd>,
}

impl CellSpec<'_> {
    fn kept(&self) -> Vec<RawFd> {
        let mut kept: Vec<RawFd> = [&self.control, &self.go, &self.stdout, &self.stderr]
            .into_iter()
            .chain(self.stdin.as_ref())
            .chain(self.trial_dir.as_ref())
            .chain(&self.tasks)
            .map(|fd| fd.as_raw_fd())
            .collect();
        kept.extend(self.root.descriptors());
        kept
    }
}

/// Runs in the child of clone3, as process 1 of its own pid namespace. The value is the init's exit code, which
/// nobody relies on.
pub(crate) fn enter(spec: &CellSpec<'_>) -> i32 {
    match init(spec) {
        Ok(()) => 0,
        Err(error) => fail(spec, error),
    }
}

/// Init: from the bare clone to the reaping loop.
fn init(spec: &CellSpec<'_>) -> Result<(), StageError> {
    let is_on = |id| !spec.off.has(id);
    // First, so that nothing the launcher holds (other cells' descriptors, locks) lives on in here.
    if is_on(ControlId::FdsClosed) {
        toolcell_sys::close_except(&spec.kept()).at(Stage::Namespaces, Op::CloseFds)?;
    }
    // Whatever umask the runner was started with: the modes of what is made here are meant as written.
    let _before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    // Before anything is allocated or mounted, so that all of it is charged to the cell.
    cgroups::join(&spec.tasks)?;
    // After joining: the cgroup namespace's root is the group that the process is in at this moment.
    if is_on(ControlId::NamespaceCgroup) {
        namespaces::enter_cgroup_namespace()?;
    }
    // Ids mean nothing before the launcher has written the maps: files made now would be EOVERFLOW.
    namespaces::wait_until_mapped(spec.control.as_fd())?;
    // Before mounts, so that what is made belongs to a mapped id; keeps its capabilities across the change.
    identity::become_init(spec.ids, is_on(ControlId::NamespaceUser))?;
    // Only now: a change of ids clears the parent-death signal. If the launcher died before, the socket tells.
    namespaces::die_with_launcher(spec.control.as_fd())?;
    if is_on(ControlId::NamespaceUts) {
        namespaces::name_host()?;
    }
    // Needs the capabilities and the new pid namespace (procfs shows the namespace of who mounts it).
    mounts::build(&spec.root, &spec.limits, spec.off)?;
    if !is_on(ControlId::NamespacePid) {
        namespaces::adopt_orphans()?;
    }
    // The tool is a child, so that it is not process 1: no immunity to its own signals, no duty to reap.
    let tool = toolcell_sys::clone_process(0, None, || match tool(spec) {
        Ok(never) => match never {},
        Err(error) => fail(spec, error),
    })
    .map_err(|error| StageError::new(Stage::Supervise, Op::Fork, error.errno()))?;
    supervise::harden(spec.control.as_fd(), spec.filters)?;
    supervise::reap(spec.control.as_fd(), tool.pid)
}

/// The tool's process: from the fork to exec. Never returns but with an error.
fn tool(spec: &CellSpec<'_>) -> Result<std::convert::Infallible, StageError> {
    let is_on = |id| !spec.off.has(id);
    stdio::enter_session()?;
    // The plan is read while descriptors from before the filters may still be used freely.
    let go = exec::read_plan(spec.go.as_fd())?;
    stdio::install(spec)?;
    // With capabilities still there: the probes compare the same act without and with Landlock, under the init's own
    // ids, so that nothing but Landlock can make the difference.
    let mut tries = Probes::untried();
    tries::before_landlock(&mut tries, spec.off);
    let mut probes = landlock::restrict(tries, spec.landlock, spec.off, spec.trial_dir.as_ref())?;
    identity::probe_nested_user_namespace(&mut probes, spec.off)?;
    // Before the change of ids: lowering limits needs nothing, and the next steps must not be stopped by them.
    if is_on(ControlId::Rlimits) {
        rlimits::apply(&spec.limits, spec.is_ungrouped)?;
    }
    // Leaves the init's ids for the tool's own; without a fixup the capabilities stay until they are dropped by name.
    identity::become_tool(spec.ids, spec.off)?;
    if !is_on(ControlId::NamespacePid) {
        // Without a pid namespace nothing else ends it with its init, should the launcher be killed.
        namespaces::die_with_init()?;
    }
    // The bounding set needs CAP_SETPCAP, so it goes before the others.
    if !is_on(ControlId::Capabilities) {
        capabilities::keep()?;
    } else if is_on(ControlId::NoNewPrivs) {
        capabilities::empty()?;
    }
    if is_on(ControlId::NoNewPrivs) {
        capabilities::no_new_privs()?;
        tries::without_capabilities(&mut probes, spec.off);
    }
    // As the tool's own id: a directory that it may not enter is an error, not a privilege.
    exec::enter_directory(&go)?;
    // After the change of ids, which hides the process from everybody but root: the launcher is to read it back.
    identity::be_readable()?;
    // Last of all: everything above needs calls that the filter refuses.
    if is_on(ControlId::Seccomp) {
        seccomp::apply(spec.filters.for_tool(!spec.root.mounts.is_empty()), is_on(ControlId::NoNewPrivs))?;
    }
    tries::under_filter(&mut probes, spec.off);
    // Without no_new_privs a filter is only taken from who has CAP_SYS_ADMIN (seccomp(2)).
    if is_on(ControlId::Capabilities) && !is_on(ControlId::NoNewPrivs) {
        capabilities::empty()?;
    }
    // The launcher reads this very process back from outside and lets it go, or kills the cell.
    exec::arm(spec.control.as_fd(), probes)?;
    exec::execute(&go, is_on(ControlId::EnvironmentAllowlist))
}

/// Tells the launcher what went wrong. When even that fails there is nobody to tell: the launcher sees the end.
fn fail(spec: &CellSpec<'_>, error: StageError) -> i32 {
    match rustix::net::send(&spec.control, &Record::Failed(error).encode(), rustix::net::SendFlags::NOSIGNAL) {
        Ok(_) => 1,
        Err(_errno) => 2,
    }
}
