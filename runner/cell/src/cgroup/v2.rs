//! Version 2: one tree, one group per cell, in which its first process is born and which is killed as a whole.
//!
//! Groups with controllers for the groups below them hold no process themselves (cgroups(7), "no internal processes"):
//! cells are leaves, and where our own group is the parent of all this, we move into a leaf beside them.

mod own;
mod place;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use toolcell_types::{CellId, ControlId, ControlSet, Fact, Limits};

pub use self::own::OwnGroup;
pub(super) use self::place::{Mount, is_own_group_given, mount, settle};
use super::counters::{Counters, CpuTime, ReadBack, Witnesses};
use super::files::{
    access, again_while_it_vanishes, keyed, kill_member, members_of, number, put, read, remove_dir, remove_unless_used,
    write, write_text,
};
use super::{CPU_PERIOD_US, CgroupError, Hierarchies, cpu_quota_us};

/// The controllers that a cell needs.
const NEEDED: [&str; 3] = ["memory", "cpu", "pids"];
/// The limit of swap alone.
const SWAP_MAX: &str = "memory.swap.max";
/// How often, 5 ms apart, an earlier life is looked at before it is said that it cannot be killed or removed.
const ROUNDS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// The group of one instance, below which each cell gets its own.
#[derive(Debug)]
pub(crate) struct Instance {
    dir: PathBuf,
    parent: PathBuf,
    /// Groups above that were not there before, or are nobody's but our instances', the lowest first.
    above: Vec<PathBuf>,
    mount: Mount,
}

impl Instance {
    /// Makes the instance's group, hands the controllers down to it, and removes what an earlier life of this very
    /// instance left (its processes are killed first).
    pub(super) fn open(mount: &Mount, parent: &str, instance: &str) -> Result<Self, CgroupError> {
        let is_common = parent.trim_matches('/') == super::PARENT;
        let parent = mount.below(parent);
        let dir = parent.join(instance);
        let above = dir.ancestors().skip(1).take_while(|path| *path != mount.point);
        let above: Vec<PathBuf> = above.filter(|path| is_common || !path.exists()).map(Path::to_owned).collect();
        if let Err(error) = again_while_it_vanishes(|| place::hand_down_to(&mount.point, &dir)) {
            let made = std::iter::once(&dir).chain(&above).try_for_each(|path| remove_unless_used(path));
            if let Err(second) = made {
                tracing::debug!(error = %second, "a group of an instance that could not be made stays behind");
            }
            return Err(error);
        }
        for cell in children(&dir)? {
            tracing::info!(path = %cell.display(), "removing a group that an earlier start left");
            sweep_tree(&cell)?;
        }
        Ok(Self { dir, parent, above, mount: mount.clone() })
    }

    /// Removes the instance's own group; only once no cell is left.
    pub(super) fn remove(&self) -> Result<(), CgroupError> {
        remove_dir(&self.dir)?;
        // The common parent goes with the last instance; others may still use it. What an operator has prepared stays.
        self.above.iter().try_for_each(|path| remove_unless_used(path))
    }

    /// Goes back into our own group, if it was made the parent of cells. What stays of it is whose group this is.
    pub(super) fn leave(&self) {
        if let Err(error) = place::leave_runner(&self.mount, &self.parent) {
            tracing::info!(error = %crate::readback::describe(&error), "the group that this instance ran in stays");
        }
    }

    /// Makes the group of one cell and sets its limits. A group that was there already is an error.
    pub(super) fn create(&self, cell: CellId, limits: &Limits, off: ControlSet) -> Result<Group, CgroupError> {
        let dir = self.dir.join(format!("cell-{cell}"));
        fs::create_dir(&dir).map_err(access("make", &dir))?;
        let counts_swap = dir.join(SWAP_MAX).exists();
        let mut made = Group { shown: self.mount.shown(&dir), dir, counts_swap };
        match made.limit(limits, off) {
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

/// The group of one cell.
#[derive(Debug)]
pub(crate) struct Group {
    dir: PathBuf,
    /// Its path as /proc/PID/cgroup has it.
    shown: String,
    /// Whether swap is counted: without accounting (swapaccount=0, no CONFIG_SWAP) there is no limit for it.
    counts_swap: bool,
}

impl Group {
    pub(super) const WITNESSES: Witnesses =
        Witnesses { cpu: "cpu.stat usage_usec", oom_kills: "memory.events oom_kill", forks_refused: "pids.events max" };

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn limit(&self, limits: &Limits, off: ControlSet) -> Result<(), CgroupError> {
        if !off.has(ControlId::CgroupMemory) {
            write(&self.file("memory.max"), limits.memory_bytes)?;
            if self.counts_swap {
                write(&self.file(SWAP_MAX), 0)?;
            }
        }
        // The kernel picks one process, so that a parent can tell what happened to its child.
        write(&self.file("memory.oom.group"), 0)?;
        if !off.has(ControlId::CgroupPids) {
            write(&self.file("pids.max"), limits.pids)?;
        }
        if off.has(ControlId::CgroupCpu) {
            return Ok(());
        }
        write_text(&self.file("cpu.max"), &cpu_max(limits))
    }

    /// Whether there is a limit for swap.
    pub(super) fn counts_swap(&self) -> bool {
        self.counts_swap
    }

    /// Memory limits as the kernel has them; no swap where swap is counted.
    pub(super) fn memory_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        let mut backs = vec![self.back("memory.max", super::whole_pages(limits.memory_bytes))?];
        if self.counts_swap {
            backs.push(self.back(SWAP_MAX, 0_u64)?);
        }
        backs.push(self.back("memory.oom.group", 0_u64)?);
        Ok(backs)
    }

    /// Processor quota and period as the kernel has them.
    pub(super) fn cpu_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        Ok(vec![self.back("cpu.max", cpu_max(limits))?])
    }

    /// Process limit as the kernel has it.
    pub(super) fn pids_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        Ok(vec![self.back("pids.max", limits.pids)?])
    }

    fn back(&self, name: &'static str, wanted: impl Into<Fact>) -> Result<ReadBack, CgroupError> {
        let text = read(&self.file(name))?;
        let text = text.trim();
        let got = text.parse::<u64>().map_or_else(|_no_number| Fact::from(text), Fact::from);
        Ok(ReadBack { name, wanted: wanted.into(), got })
    }

    /// The group itself, to be born in.
    pub(super) fn open_dir(&self) -> Result<OwnedFd, CgroupError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(&self.dir, flags, Mode::empty()).map_err(|errno| access("open", &self.dir)(errno.into()))
    }

    /// `cgroup.procs`, for a child that could not be born in the group.
    pub(super) fn tasks(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        let path = self.file("cgroup.procs");
        let opened = rustix::fs::open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        opened.map(|file| vec![file]).map_err(|errno| access("open", &path)(errno.into()))
    }

    /// Whether /proc/PID/cgroup names this group.
    pub(super) fn is_in(&self, proc_cgroup: &str) -> bool {
        proc_cgroup.lines().any(|line| line.strip_prefix("0::") == Some(&self.shown))
    }

    /// Every process in the group.
    pub(super) fn members(&self) -> Result<BTreeSet<i32>, CgroupError> {
        Ok(members_of(&self.dir)?.into_iter().collect())
    }

    /// Kills the whole group, frozen or forking as it may be, and says how many are left.
    pub(super) fn kill_members(&self) -> Result<usize, CgroupError> {
        lift_quota(&self.dir)?;
        kill(&self.dir)?;
        self.left()
    }

    /// How many processes are left, at least.
    pub(super) fn left(&self) -> Result<usize, CgroupError> {
        left(&self.dir)
    }

    /// Processor time so far.
    pub(super) fn cpu(&self) -> Result<CpuTime, CgroupError> {
        let path = self.file("cpu.stat");
        let text = read(&path)?;
        let us = |key: &str| {
            let missing = || CgroupError::NotANumber { path: path.clone(), got: format!("no {key}") };
            keyed(&text, key).ok_or_else(missing)
        };
        Ok(CpuTime { total: us("usage_usec")?, user: us("user_usec")?, system: us("system_usec")? })
    }

    /// All counters; one that this kernel lacks (memory.peak came with 5.19, pids.peak later) is absent.
    pub(super) fn counters(&self) -> Counters {
        let of = |file: &str, key: &str| keyed(&read(&self.file(file)).ok()?, key);
        Counters {
            cpu: self.cpu().ok(),
            throttled_us: of("cpu.stat", "throttled_usec"),
            memory_peak_bytes: number(&self.file("memory.peak")).ok(),
            pids_peak: number(&self.file("pids.peak")).ok(),
            oom_kills: of("memory.events", "oom_kill"),
            forks_refused: of("pids.events", "max"),
        }
    }

    /// Removes the group. EBUSY while the kernel still lets go of the last member: the caller tries again.
    pub(super) fn remove(&mut self) -> Result<(), CgroupError> {
        remove_dir(&self.dir)
    }
}

fn cpu_max(limits: &Limits) -> String {
    format!("{} {CPU_PERIOD_US}", cpu_quota_us(limits))
}

/// Kills a group and all below it (`cgroup.kill`, Linux 5.14); where there is no such file, each member by itself.
fn kill(dir: &Path) -> Result<(), CgroupError> {
    let path = dir.join("cgroup.kill");
    match put(&path, "1") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => members_of(dir)?
            .into_iter()
            .try_for_each(|number| kill_member(number, |number| Ok(members_of(dir)?.contains(&number)))),
        other => other.map_err(access("write", &path)),
    }
}

/// Takes the processor quota away, where there is one: a process needs its share to die.
fn lift_quota(dir: &Path) -> Result<(), CgroupError> {
    let path = dir.join("cpu.max");
    match put(&path, "max") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(access("write", &path)),
    }
}

/// How many processes a group still has, at least, those below it included.
fn left(dir: &Path) -> Result<usize, CgroupError> {
    let path = dir.join("cgroup.events");
    match keyed(&read(&path)?, "populated") {
        Some(0) => Ok(0),
        Some(_) | None => Ok(members_of(dir)?.len().max(1)),
    }
}

/// The groups right below one.
fn children(dir: &Path) -> Result<Vec<PathBuf>, CgroupError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(access("list", dir))? {
        let entry = entry.map_err(access("list", dir))?;
        // By the entry's own type: no link is followed, and of the kernel's files none is a directory.
        if entry.file_type().map_err(access("look at", dir))?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Kills and removes a group with all below it. Bounded: what is still there then is in the kernel's hands.
fn sweep_tree(dir: &Path) -> Result<(), CgroupError> {
    for _round in 0..ROUNDS {
        lift_quota(dir)?;
        kill(dir)?;
        if left(dir)? == 0 {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    for child in children(dir)? {
        sweep_tree(&child)?;
    }
    for _round in 0..ROUNDS {
        match remove_dir(dir) {
            Err(CgroupError::Access { source, .. }) if source.raw_os_error() == Some(nix::libc::EBUSY) => {
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
    remove_dir(dir)
}

#[cfg(test)]
mod tests;
