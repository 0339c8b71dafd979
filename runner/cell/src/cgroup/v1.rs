//! Version 1: each controller has a tree of its own, or shares one with others, and processes are killed one by one.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use toolcell_types::{CellId, ControlId, ControlSet, Fact, Limits};

use super::counters::{Counters, CpuTime, ReadBack, Witnesses};
use super::files::{
    access, again_while_it_vanishes, keyed, kill_member, members_of, number, read, remove_dir, remove_unless_used,
    write, write_text,
};
use super::{CPU_PERIOD_US, CgroupError, cpu_quota_us};
use crate::mountinfo::Mount;

/// The limit of memory and swap together.
const MEMORY_AND_SWAP: &str = "memory.memsw.limit_in_bytes";

/// A controller that a cell needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Controller {
    Memory,
    Cpu,
    Cpuacct,
    Pids,
    Freezer,
}

impl Controller {
    /// The processor first, as sweeping takes the quota away that others may wait for.
    pub(super) const ALL: [Self; 5] = [Self::Cpu, Self::Memory, Self::Cpuacct, Self::Pids, Self::Freezer];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Pids => "pids",
            Self::Freezer => "freezer",
        }
    }
}

/// Where each controller is mounted, or the controllers that no mounted hierarchy carries.
pub(super) fn mounts(mounts: &[Mount]) -> Result<Vec<(Controller, Dir)>, Vec<&'static str>> {
    let (mut found, mut lacks) = (Vec::new(), Vec::new());
    for controller in Controller::ALL {
        match hierarchy(mounts, controller.name()) {
            Some(top) => found.push((controller, top)),
            None => lacks.push(controller.name()),
        }
    }
    if lacks.is_empty() { Ok(found) } else { Err(lacks) }
}

/// Top of what is mounted of the hierarchy with this controller (proc(5)): the superblock options name it.
fn hierarchy(mounts: &[Mount], controller: &str) -> Option<Dir> {
    mounts
        .iter()
        .find(|mount| mount.fs == "cgroup" && mount.fs_options.iter().any(|option| option == controller))
        .map(|mount| Dir { path: mount.point.clone(), shown: mount.root.to_string_lossy().into_owned() })
}

/// A group in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dir {
    path: PathBuf,
    /// As /proc/PID/cgroup names it. Not the path below the mount where only a part of the hierarchy is mounted, as in
    /// a container.
    shown: String,
}

impl Dir {
    /// Whether groups may be made in it by who this process is.
    pub(super) fn is_writable(&self) -> bool {
        rustix::fs::access(&self.path, rustix::fs::Access::WRITE_OK).is_ok()
    }

    fn below(&self, relative: &str) -> Self {
        let shown = format!("{}/{}", self.shown.trim_end_matches('/'), relative.trim_matches('/'));
        Self { path: self.path.join(relative.trim_start_matches('/')), shown }
    }
}

/// The groups of one instance, below which each cell gets its own.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Group of the instance per hierarchy; controllers that share a hierarchy share a group.
    roots: Vec<(Vec<Controller>, Dir)>,
    /// Whether the kernel counts memory and swap together (CONFIG_MEMCG_SWAP, `swapaccount=`).
    counts_swap: bool,
    /// Groups above that were not there before, or are nobody's but our instances': they go with the last instance.
    above: Vec<PathBuf>,
}

impl Instance {
    /// Makes the instance's group in each hierarchy, and removes what an earlier life of this very instance left (its
    /// processes are killed first).
    pub(super) fn open(mounts: &[(Controller, Dir)], parent: &str, instance: &str) -> Result<Self, CgroupError> {
        let mut roots: Vec<(Vec<Controller>, Dir)> = Vec::new();
        for (controller, top) in mounts {
            let dir = top.below(parent).below(instance);
            match roots.iter_mut().find(|(_, known)| *known == dir) {
                Some((controllers, _)) => controllers.push(*controller),
                None => roots.push((vec![*controller], dir)),
            }
        }
        let above = roots.iter().flat_map(|(_, root)| made_above(&root.path, mounts, parent)).collect();
        for (_, Dir { path, .. }) in &roots {
            if let Err(error) = again_while_it_vanishes(|| make_all(path)) {
                let made = Self { roots, counts_swap: false, above };
                if let Err(second) = made.remove() {
                    tracing::debug!(error = %second, "a group of an instance that could not be made stays behind");
                }
                return Err(error);
            }
        }
        let memory = roots.iter().find(|(controllers, _)| controllers.contains(&Controller::Memory));
        let counts_swap = memory.is_some_and(|(_, root)| root.path.join(MEMORY_AND_SWAP).exists());
        let opened = Self { roots, counts_swap, above };
        opened.sweep()?;
        Ok(opened)
    }

    /// Kills and removes everything below the instance's groups.
    fn sweep(&self) -> Result<(), CgroupError> {
        for (_, Dir { path: root, .. }) in &self.roots {
            for entry in fs::read_dir(root).map_err(access("list", root))? {
                let path = entry.map_err(access("list", root))?.path();
                if path.is_dir() {
                    tracing::info!(path = %path.display(), "removing a group that an earlier start left");
                    sweep_group(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Removes the instance's own groups; only once no cell is left.
    pub(super) fn remove(&self) -> Result<(), CgroupError> {
        // Of each hierarchy, whatever becomes of another.
        let ours = self.roots.iter().map(|(_, root)| remove_dir(&root.path));
        // What an operator has prepared is the operator's and stays.
        ours.chain(self.above.iter().map(|path| remove_unless_used(path))).fold(Ok(()), Result::and)
    }

    /// Makes the groups of one cell and sets its limits. A group that was there already is an error.
    pub(super) fn create(&self, cell: CellId, limits: &Limits, off: ControlSet) -> Result<Group, CgroupError> {
        let mut made = Group { dirs: Vec::with_capacity(self.roots.len()), counts_swap: self.counts_swap };
        let built = self.roots.iter().try_for_each(|(controllers, root)| {
            let dir = root.below(&format!("cell-{cell}"));
            fs::create_dir(&dir.path).map_err(access("make", &dir.path))?;
            made.dirs.push((controllers.clone(), dir));
            Ok(())
        });
        match built.and_then(|()| made.limit(limits, off)) {
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

/// The groups between an instance's and the top of the hierarchy that go with it, the lowest first.
fn made_above(root: &Path, mounts: &[(Controller, Dir)], parent: &str) -> Vec<PathBuf> {
    let is_top = |path: &Path| mounts.iter().any(|(_, top)| top.path == path);
    let above = root.ancestors().skip(1).take_while(|path| !is_top(path));
    above.filter(|path| parent.trim_matches('/') == super::PARENT || !path.exists()).map(Path::to_owned).collect()
}

/// As [`fs::create_dir_all`], naming the one that could not be made.
fn make_all(path: &Path) -> Result<(), CgroupError> {
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    for path in missing.into_iter().rev() {
        match fs::create_dir(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(access("make", path)(error)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn sweep_group(path: &Path) -> Result<(), CgroupError> {
    // Nobody is asked whether a process is in it: what is in it is killed.
    let dir = Dir { path: path.to_owned(), shown: String::new() };
    let mut group = Group { dirs: vec![(Controller::ALL.to_vec(), dir)], counts_swap: false };
    let quota = path.join("cpu.cfs_quota_us");
    if quota.exists() {
        // A process needs its share to die.
        write_text(&quota, "-1")?;
    }
    // Bounded: what cannot be killed in these rounds is in the kernel's hands, and removal says so.
    for _round in 0..200 {
        let members = group.members()?;
        for number in &members {
            kill_member(*number, |number| Ok(group.members()?.contains(&number)))?;
        }
        let freezer = path.join("freezer.state");
        if freezer.exists() {
            write_text(&freezer, "THAWED")?;
        }
        if members.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    group.remove()
}

/// The groups of one cell, one directory per hierarchy.
#[derive(Debug)]
pub(crate) struct Group {
    dirs: Vec<(Vec<Controller>, Dir)>,
    counts_swap: bool,
}

impl Group {
    pub(super) const WITNESSES: Witnesses =
        Witnesses { cpu: "cpuacct.usage", oom_kills: "memory.oom_control oom_kill", forks_refused: "pids.events max" };

    fn file(&self, controller: Controller, name: &str) -> PathBuf {
        let dir = self.dirs.iter().find(|(controllers, _)| controllers.contains(&controller));
        dir.map(|(_, dir)| dir.path.as_path()).unwrap_or(Path::new("/nonexistent")).join(name)
    }

    fn limit(&self, limits: &Limits, off: ControlSet) -> Result<(), CgroupError> {
        use Controller::{Cpu, Memory, Pids};
        if !off.has(ControlId::CgroupMemory) {
            write(&self.file(Memory, "memory.limit_in_bytes"), limits.memory_bytes)?;
            if self.counts_swap {
                write(&self.file(Memory, MEMORY_AND_SWAP), limits.memory_bytes)?;
            }
        }
        if !off.has(ControlId::CgroupPids) {
            write(&self.file(Pids, "pids.max"), limits.pids)?;
        }
        if off.has(ControlId::CgroupCpu) {
            return Ok(());
        }
        write(&self.file(Cpu, "cpu.cfs_period_us"), CPU_PERIOD_US)?;
        write(&self.file(Cpu, "cpu.cfs_quota_us"), cpu_quota_us(limits))
    }

    /// Whether there is a limit for swap.
    pub(super) fn counts_swap(&self) -> bool {
        self.counts_swap
    }

    /// Memory limits as the kernel has them; memory and swap together where swap is counted.
    pub(super) fn memory_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        let wanted = super::whole_pages(limits.memory_bytes);
        let mut backs = vec![self.back(Controller::Memory, "memory.limit_in_bytes", wanted)?];
        if self.counts_swap {
            backs.push(self.back(Controller::Memory, MEMORY_AND_SWAP, wanted)?);
        }
        Ok(backs)
    }

    /// Processor quota as the kernel has it.
    pub(super) fn cpu_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        Ok(vec![
            self.back(Controller::Cpu, "cpu.cfs_quota_us", cpu_quota_us(limits))?,
            self.back(Controller::Cpu, "cpu.cfs_period_us", CPU_PERIOD_US)?,
        ])
    }

    /// Process limit as the kernel has it.
    pub(super) fn pids_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        Ok(vec![self.back(Controller::Pids, "pids.max", limits.pids)?])
    }

    fn back(&self, controller: Controller, name: &'static str, wanted: u64) -> Result<ReadBack, CgroupError> {
        let text = read(&self.file(controller, name))?;
        let text = text.trim();
        let got = text.parse::<u64>().map_or_else(|_no_number| Fact::from(text), Fact::from);
        Ok(ReadBack { name, wanted: wanted.into(), got })
    }

    /// `tasks` files for the child to join through, opened by us: the kernel checks who opened (CVE-2021-4197).
    pub(super) fn tasks(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let open = |path: PathBuf| {
            rustix::fs::open(&path, flags, Mode::empty()).map_err(|errno| access("open", &path)(errno.into()))
        };
        self.dirs.iter().map(|(_, dir)| open(dir.path.join("tasks"))).collect()
    }

    /// Whether /proc/PID/cgroup, read in our own cgroup namespace, names the cell's group for each controller.
    pub(super) fn is_in(&self, proc_cgroup: &str) -> bool {
        let is_at = |controller: Controller, dir: &Dir| {
            proc_cgroup.lines().any(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                let has = fields.next().is_some_and(|names| names.split(',').any(|name| name == controller.name()));
                has && fields.next() == Some(&dir.shown)
            })
        };
        self.dirs.iter().all(|(controllers, dir)| controllers.iter().all(|controller| is_at(*controller, dir)))
    }

    /// Every process in the group of processes. It is in all the others as well: the init joins them all before anything
    /// else, and its children are born where it is.
    pub(super) fn members(&self) -> Result<BTreeSet<i32>, CgroupError> {
        Ok(members_of(&self.file(Controller::Pids, ""))?.into_iter().collect())
    }

    /// How many processes the first group that is not empty has.
    pub(super) fn left(&self) -> Result<usize, CgroupError> {
        for (_, dir) in &self.dirs {
            let members = members_of(&dir.path)?.len();
            if members > 0 {
                return Ok(members);
            }
        }
        Ok(0)
    }

    /// One round of killing: SIGKILL to some members, then thaw, as a frozen process does not die (freezer v1), and no
    /// quota. The pid namespace's init is killed by its pidfd before; this is for what that did not reach.
    pub(super) fn kill_members(&self) -> Result<usize, CgroupError> {
        write_text(&self.file(Controller::Cpu, "cpu.cfs_quota_us"), "-1")?;
        let pids = self.file(Controller::Pids, "");
        for number in members_of(&pids)?.into_iter().take(super::KILLS_A_ROUND) {
            kill_member(number, |number| Ok(members_of(&pids)?.contains(&number)))?;
        }
        write_text(&self.file(Controller::Freezer, "freezer.state"), "THAWED")?;
        self.left()
    }

    /// Processor time so far.
    pub(super) fn cpu(&self) -> Result<CpuTime, CgroupError> {
        let us = |name| Ok(number(&self.file(Controller::Cpuacct, name))? / 1000);
        Ok(CpuTime { total: us("cpuacct.usage")?, user: us("cpuacct.usage_user")?, system: us("cpuacct.usage_sys")? })
    }

    /// All counters; one that this kernel lacks is absent.
    pub(super) fn counters(&self) -> Counters {
        let of = |controller, file: &str, key: &str| keyed(&read(&self.file(controller, file)).ok()?, key);
        let plain = |controller, file: &str| number(&self.file(controller, file)).ok();
        Counters {
            cpu: self.cpu().ok(),
            throttled_us: of(Controller::Cpu, "cpu.stat", "throttled_time").map(|nanos| nanos / 1000),
            memory_peak_bytes: plain(Controller::Memory, "memory.memsw.max_usage_in_bytes")
                .or_else(|| plain(Controller::Memory, "memory.max_usage_in_bytes")),
            pids_peak: plain(Controller::Pids, "pids.peak"),
            oom_kills: of(Controller::Memory, "memory.oom_control", "oom_kill"),
            forks_refused: of(Controller::Pids, "pids.events", "max"),
        }
    }

    /// Removes the groups. EBUSY while the kernel still lets go of the last member: the caller tries again.
    pub(super) fn remove(&mut self) -> Result<(), CgroupError> {
        while let Some((_, dir)) = self.dirs.last() {
            remove_dir(&dir.path)?;
            self.dirs.truncate(self.dirs.len().saturating_sub(1));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
