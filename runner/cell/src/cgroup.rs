//! One noun for control groups: make, limit, read back, kill, count, remove. What differs between cgroup versions is
//! in here and nowhere else: in version 1 controllers have trees of their own, in version 2 there is one tree.
//!
//! The version is chosen by where the controllers are, not by what is mounted: a hybrid machine has an empty version 2
//! tree beside its version 1 controllers.
//!
//! A thin module of our own instead of cgroups-rs: the crate cannot kill on v1, cannot address another root than
//! /sys/fs/cgroup, reads neither pids.events nor the user and system parts of cpuacct, swallows write errors of
//! further attributes, and brings a D-Bus client into the privileged process (see ARCHITECTURE.md).

mod counters;
mod error;
mod files;
mod v1;
mod v2;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use toolcell_types::{CellId, ControlSet, Limits};

pub(crate) use self::counters::{Counters, CpuTime, ReadBack, Witnesses};
pub use self::error::CgroupError;
use self::files::read;
pub use self::v2::OwnGroup;
use crate::mountinfo::{self, Mount};

/// Group of all instances at the top of each hierarchy, where neither the operator nor our own group says another.
const PARENT: &str = "toolcell";
/// Quota period. The kernel's default and Docker's; the quota is `cpu_millis` hundredths of it per thousand.
const CPU_PERIOD_US: u64 = 100_000;

/// Sees whether this machine has control groups that cells can be put into. Changes nothing.
///
/// # Errors
/// [`CgroupError::NoControllers`] if neither version has all controllers; the error's remedy says what to mount.
pub fn find_groups() -> Result<(), CgroupError> {
    Hierarchies::find().map(|_found| ())
}

/// Whether the machine's memory controller is in version 1, for a message. A container sees the machine's hierarchies.
pub(crate) fn is_of_version_1() -> bool {
    let mountinfo = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let has_memory = |mount: &Mount| mount.fs_options.iter().any(|option| option == "memory");
    mountinfo::mounts(&mountinfo).any(|mount| mount.fs == "cgroup" && has_memory(&mount))
}

/// Chooses the group below which this instance makes its own, and kills and removes what an earlier life of this
/// instance left. Once it returns, nothing of that life runs any more. For who holds the instance's lock and has not
/// started its parts yet: on version 2 this process may be moved into another group, where its children begin.
///
/// The value is the chosen group, relative to the top of each hierarchy; the launcher takes it.
///
/// # Errors
/// [`CgroupError`]: groups cannot be used here, or something is left that cannot be killed. No cell can be had then.
pub fn settle_groups(parent: Option<&str>, instance: &str) -> Result<String, CgroupError> {
    let hierarchies = Hierarchies::find()?;
    let parent = match &hierarchies {
        Hierarchies::V1(_) => parent.unwrap_or(PARENT).to_owned(),
        Hierarchies::V2(mount) => v2::settle(mount, parent, instance)?,
    };
    hierarchies.open(&parent, instance)?.remove()?;
    Ok(parent)
}

/// Whether a user who is not root was given groups here: the top of what is mounted of each hierarchy, or on version 2 the
/// group that this process is in. Changes nothing. Where nothing was given there are no groups, which is no fault.
#[must_use]
pub fn are_groups_given() -> bool {
    match Hierarchies::find() {
        Ok(Hierarchies::V1(tops)) => tops.iter().all(|(_, top)| top.is_writable()),
        Ok(Hierarchies::V2(mount)) => v2::is_own_group_given(&mount),
        Err(_) => false,
    }
}

/// Where the controllers are.
#[derive(Debug)]
enum Hierarchies {
    V1(Vec<(v1::Controller, v1::Dir)>),
    V2(v2::Mount),
}

impl Hierarchies {
    fn find() -> Result<Self, CgroupError> {
        let path = Path::new("/proc/self/mountinfo");
        let mountinfo = std::fs::read(path).map_err(files::access("read", path))?;
        let mounts = mountinfo::reachable(mountinfo::mounts(&mountinfo), mountinfo::mount_at);
        Self::among(&mounts, |top| read(&top.join("cgroup.controllers")).unwrap_or_default())
    }

    /// Version 1 if it carries everything, then version 2 if it does.
    fn among(mounts: &[Mount], controllers: impl Fn(&Path) -> String) -> Result<Self, CgroupError> {
        let v1_lacks = match v1::mounts(mounts) {
            Ok(mounts) => return Ok(Self::V1(mounts)),
            Err(lacks) => lacks,
        };
        v2::mount(mounts, controllers)
            .map(Self::V2)
            .map_err(|v2_lacks| CgroupError::NoControllers { v1_lacks, v2_lacks })
    }

    fn open(&self, parent: &str, instance: &str) -> Result<Instance, CgroupError> {
        match self {
            Self::V1(mounts) => v1::Instance::open(mounts, parent, instance).map(Instance::V1),
            Self::V2(mount) => v2::Instance::open(mount, parent, instance).map(Instance::V2),
        }
    }
}

/// The groups of one instance, below which each cell gets its own.
#[derive(Debug)]
pub(crate) enum Instance {
    V1(v1::Instance),
    V2(v2::Instance),
    /// No group may be made here. What needs one is reported as unavailable.
    Absent,
}

impl Instance {
    /// Makes the instance's groups below the one that [`settle_groups`] chose, and sweeps them. Without a parent there
    /// are none.
    pub(crate) fn open(parent: Option<&str>, instance: &str) -> Result<Self, CgroupError> {
        match parent {
            Some(parent) => Hierarchies::find()?.open(parent, instance),
            None => Ok(Self::Absent),
        }
    }

    fn remove(&self) -> Result<(), CgroupError> {
        match self {
            Self::V1(instance) => instance.remove(),
            Self::V2(instance) => instance.remove(),
            Self::Absent => Ok(()),
        }
    }

    /// Removes the instance's own groups and goes back to where this process was before; only once no cell is left.
    pub(crate) fn close(&self) -> Result<(), CgroupError> {
        self.remove()?;
        if let Self::V2(instance) = self {
            instance.leave();
        }
        Ok(())
    }

    /// Makes the groups of one cell and sets its limits, but those that are `off`. What the kernel made of them is read back
    /// once the cell's processes are in it.
    pub(crate) fn create(&self, cell: CellId, limits: &Limits, off: ControlSet) -> Result<Cgroup, CgroupError> {
        match self {
            Self::V1(instance) => instance.create(cell, limits, off).map(Cgroup::V1),
            Self::V2(instance) => instance.create(cell, limits, off).map(Cgroup::V2),
            Self::Absent => Ok(Cgroup::Absent),
        }
    }
}

/// The groups of one cell.
#[derive(Debug)]
pub(crate) enum Cgroup {
    V1(v1::Group),
    V2(v2::Group),
    /// None: nothing is counted, nothing limited, and the cell's end is that of its pid namespace.
    Absent,
}

impl Cgroup {
    /// Whether there is none.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Which version, as reports have it.
    pub(crate) fn version(&self) -> u64 {
        match self {
            Self::V1(_) => 1,
            Self::V2(_) => 2,
            Self::Absent => 0,
        }
    }

    /// The files that tell of a limit that was reached.
    pub(crate) fn witnesses(&self) -> Witnesses {
        match self {
            Self::V1(_) => v1::Group::WITNESSES,
            Self::V2(_) => v2::Group::WITNESSES,
            Self::Absent => Witnesses::NONE,
        }
    }

    /// Memory limits as the kernel has them; swap is limited where it is counted.
    pub(crate) fn memory_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        match self {
            Self::V1(group) => group.memory_limits(limits),
            Self::V2(group) => group.memory_limits(limits),
            Self::Absent => Ok(Vec::new()),
        }
    }

    /// Whether this kernel counts swap, so that it can be limited.
    pub(crate) fn counts_swap(&self) -> bool {
        match self {
            Self::V1(group) => group.counts_swap(),
            Self::V2(group) => group.counts_swap(),
            Self::Absent => false,
        }
    }

    /// Processor quota as the kernel has it.
    pub(crate) fn cpu_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        match self {
            Self::V1(group) => group.cpu_limits(limits),
            Self::V2(group) => group.cpu_limits(limits),
            Self::Absent => Ok(Vec::new()),
        }
    }

    /// Process limit as the kernel has it.
    pub(crate) fn pids_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        match self {
            Self::V1(group) => group.pids_limits(limits),
            Self::V2(group) => group.pids_limits(limits),
            Self::Absent => Ok(Vec::new()),
        }
    }

    /// The group that a cell's first process can be born in (CLONE_INTO_CGROUP), which version 1 does not have.
    pub(crate) fn cradle(&self) -> Result<Option<OwnedFd>, CgroupError> {
        match self {
            Self::V1(_) | Self::Absent => Ok(None),
            Self::V2(group) => group.open_dir().map(Some),
        }
    }

    /// Files for the child to join through, where it is not born in the group. Opened by us: the kernel checks who
    /// opened (CVE-2021-4197).
    pub(crate) fn tasks(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        match self {
            Self::V1(group) => group.tasks(),
            Self::V2(group) => group.tasks(),
            Self::Absent => Ok(Vec::new()),
        }
    }

    /// Whether /proc/PID/cgroup names the cell's group, for every controller.
    pub(crate) fn is_in(&self, proc_cgroup: &str) -> bool {
        match self {
            Self::V1(group) => group.is_in(proc_cgroup),
            Self::V2(group) => group.is_in(proc_cgroup),
            Self::Absent => false,
        }
    }

    /// Every process of the cell.
    pub(crate) fn members(&self) -> Result<BTreeSet<i32>, CgroupError> {
        match self {
            Self::V1(group) => group.members(),
            Self::V2(group) => group.members(),
            Self::Absent => Err(CgroupError::Absent),
        }
    }

    /// How many processes are left, at least; 0 only if every group is empty.
    pub(crate) fn left(&self) -> Result<usize, CgroupError> {
        match self {
            Self::V1(group) => group.left(),
            Self::V2(group) => group.left(),
            Self::Absent => Ok(0),
        }
    }

    /// Kills what is left, a bounded number at a time, and takes the processor quota away, as a process needs its share
    /// to die: long system calls put a group into debt. Says how many were left.
    pub(crate) fn kill_members(&self) -> Result<usize, CgroupError> {
        match self {
            Self::V1(group) => group.kill_members(),
            Self::V2(group) => group.kill_members(),
            // Nobody can be found here; the end of the init is the proof (pid_namespaces(7)).
            Self::Absent => Ok(0),
        }
    }

    /// Processor time so far.
    pub(crate) fn cpu(&self) -> Result<CpuTime, CgroupError> {
        match self {
            Self::V1(group) => group.cpu(),
            Self::V2(group) => group.cpu(),
            Self::Absent => Err(CgroupError::Absent),
        }
    }

    /// All counters; one that this kernel lacks is absent.
    pub(crate) fn counters(&self) -> Counters {
        match self {
            Self::V1(group) => group.counters(),
            Self::V2(group) => group.counters(),
            Self::Absent => Counters::default(),
        }
    }

    /// Removes the groups. EBUSY while the kernel still lets go of the last member: the caller tries again.
    pub(crate) fn remove(&mut self) -> Result<(), CgroupError> {
        match self {
            Self::V1(group) => group.remove(),
            Self::V2(group) => group.remove(),
            Self::Absent => Ok(()),
        }
    }
}

/// Most members killed by name in one round: each is looked up again, and the clocks of other cells wait meanwhile.
const KILLS_A_ROUND: usize = 32;

/// Quota of one period, microseconds.
fn cpu_quota_us(limits: &Limits) -> u64 {
    limits.cpu_millis * (CPU_PERIOD_US / 1000)
}

/// The kernel counts whole pages, rounding down (page_counter_memparse).
fn whole_pages(bytes: u64) -> u64 {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    bytes / page * page
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = "\
28 25 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 25 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
33 25 0:29 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
";

    fn mounted(mountinfo: &str) -> Vec<Mount> {
        mountinfo::mounts(mountinfo.as_bytes()).collect()
    }

    fn all(_top: &Path) -> String {
        "cpuset cpu io memory hugetlb pids rdma misc\n".to_owned()
    }

    fn none(_top: &Path) -> String {
        "\n".to_owned()
    }

    #[test]
    fn a_unified_machine_is_version_2() {
        assert!(matches!(Hierarchies::among(&mounted(UNIFIED), all), Ok(Hierarchies::V2(_))));
    }

    #[test]
    fn a_hybrid_machine_whose_controllers_are_in_version_1_is_version_1() {
        assert!(matches!(Hierarchies::among(&mounted(HYBRID), none), Ok(Hierarchies::V1(_))));
    }

    #[test]
    fn a_machine_with_neither_is_told_what_each_lacks() {
        let told = |mountinfo: &str, controllers: fn(&Path) -> String| {
            let error = Hierarchies::among(&mounted(mountinfo), controllers).unwrap_err();
            assert!(!error.remedy().is_empty());
            error.to_string()
        };
        let nothing = told("", all);
        assert!(nothing.contains("version 1 lacks cpu, memory, cpuacct, pids, freezer"), "{nothing}");
        assert!(nothing.ends_with("version 2 is not mounted"), "{nothing}");
        let without_pids = HYBRID.replace("rw,pids", "rw,name=pids");
        let split = told(&without_pids, |_top| "pids\n".to_owned());
        assert!(split.contains("version 1 lacks pids, version 2 lacks memory, cpu"), "{split}");
        assert!(told(UNIFIED, none).ends_with("version 2 lacks memory, cpu, pids"));
    }
}
