//! The groups of one cell: limits, counters, members, kill, removal.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use toolcell_types::Limits;

use super::files::{access, mismatch, number, read, remove_dir, write, write_text};
use super::{CgroupError, Controller};

/// The groups of one cell, one directory per hierarchy.
#[derive(Debug)]
pub(crate) struct Cgroup {
    dirs: Vec<(Vec<Controller>, PathBuf)>,
}

/// A limit as asked for and as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadBack {
    pub(crate) name: &'static str,
    pub(crate) wanted: u64,
    pub(crate) got: u64,
}

/// Counters of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) cpu: Option<CpuTime>,
    pub(crate) throttled_us: Option<u64>,
    pub(crate) memory_peak_bytes: Option<u64>,
    pub(crate) pids_peak: Option<u64>,
    pub(crate) oom_kills: Option<u64>,
    pub(crate) forks_refused: Option<u64>,
}

/// Processor time of a group, microseconds. The sum is exact; user and system are counted by ticks (4 ms at 250 Hz).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) total: u64,
    user_ticks: u64,
    system_ticks: u64,
}

impl CpuTime {
    /// What was used since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            user_ticks: self.user_ticks.saturating_sub(before.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(before.system_ticks),
        }
    }

    /// User and system time: the exact sum, split as the ticks are, which is how the kernel itself reports a process
    /// (cputime_adjust in kernel/sched/cputime.c): without system ticks all is user time.
    pub(crate) fn split(self) -> (u64, u64) {
        let ticks = u128::from(self.user_ticks) + u128::from(self.system_ticks);
        let system = (u128::from(self.total) * u128::from(self.system_ticks)).checked_div(ticks).unwrap_or(0);
        let system = u64::try_from(system).unwrap_or(self.total).min(self.total);
        (self.total - system, system)
    }
}

/// Quota period. The kernel's default and Docker's; the quota is `cpu_millis` hundredths of it per thousand.
const CPU_PERIOD_US: u64 = 100_000;

impl Cgroup {
    /// No group yet.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self { dirs: Vec::with_capacity(count) }
    }

    /// One more directory that is the cell's.
    pub(super) fn add(&mut self, controllers: Vec<Controller>, dir: PathBuf) {
        self.dirs.push((controllers, dir));
    }

    fn file(&self, controller: Controller, name: &str) -> PathBuf {
        let dir =
            self.dirs.iter().find(|(controllers, _)| controllers.contains(&controller)).map(|(_, dir)| dir.as_path());
        dir.unwrap_or(Path::new("/nonexistent")).join(name)
    }

    /// Writes the limits and reads each back.
    pub(super) fn limit(&self, limits: &Limits) -> Result<(), CgroupError> {
        use Controller::{Cpu, Memory, Pids};
        // The kernel counts whole pages, rounding down (page_counter_memparse).
        write(&self.file(Memory, "memory.limit_in_bytes"), limits.memory_bytes)?;
        let swap = self.file(Memory, "memory.memsw.limit_in_bytes");
        if swap.exists() {
            write(&swap, limits.memory_bytes)?;
        }
        write(&self.file(Pids, "pids.max"), limits.pids)?;
        write(&self.file(Cpu, "cpu.cfs_period_us"), CPU_PERIOD_US)?;
        write(&self.file(Cpu, "cpu.cfs_quota_us"), cpu_quota_us(limits))?;
        for back in
            self.memory_limits(limits)?.into_iter().chain(self.cpu_limits(limits)?).chain(self.pids_limits(limits)?)
        {
            if back.got != back.wanted {
                return mismatch(Path::new(back.name), &back.wanted.to_string(), &back.got.to_string());
            }
        }
        Ok(())
    }

    /// Memory limits as the kernel has them; memory and swap together where swap is counted.
    pub(crate) fn memory_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let wanted = limits.memory_bytes / page * page;
        let mut backs = vec![self.back(Controller::Memory, "memory.limit_in_bytes", wanted)?];
        if self.file(Controller::Memory, "memory.memsw.limit_in_bytes").exists() {
            backs.push(self.back(Controller::Memory, "memory.memsw.limit_in_bytes", wanted)?);
        }
        Ok(backs)
    }

    /// Processor quota as the kernel has it.
    pub(crate) fn cpu_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        Ok(vec![
            self.back(Controller::Cpu, "cpu.cfs_quota_us", cpu_quota_us(limits))?,
            self.back(Controller::Cpu, "cpu.cfs_period_us", CPU_PERIOD_US)?,
        ])
    }

    /// Process limit as the kernel has it.
    pub(crate) fn pids_limits(&self, limits: &Limits) -> Result<Vec<ReadBack>, CgroupError> {
        Ok(vec![self.back(Controller::Pids, "pids.max", limits.pids)?])
    }

    fn back(&self, controller: Controller, name: &'static str, wanted: u64) -> Result<ReadBack, CgroupError> {
        Ok(ReadBack { name, wanted, got: number(&self.file(controller, name))? })
    }

    /// `tasks` files for the child to join through, opened by us: the kernel checks who opened (CVE-2021-4197).
    pub(crate) fn tasks(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let open = |path: PathBuf| {
            rustix::fs::open(&path, flags, Mode::empty()).map_err(|errno| access("open", &path)(errno.into()))
        };
        self.dirs.iter().map(|(_, dir)| open(dir.join("tasks"))).collect()
    }

    /// Path of the cell's group per controller as /proc/PID/cgroup names it for a reader in the root namespace.
    pub(crate) fn is_in(&self, proc_cgroup: &str) -> bool {
        self.dirs.iter().all(|(controllers, dir)| {
            controllers.iter().all(|controller| {
                proc_cgroup.lines().any(|line| {
                    let mut fields = line.splitn(3, ':').skip(1);
                    let has = fields.next().is_some_and(|names| names.split(',').any(|name| name == controller.name()));
                    has && fields
                        .next()
                        .is_some_and(|path| path.len() > 1 && dir.ends_with(path.trim_start_matches('/')))
                })
            })
        })
    }

    /// Every process in any of the groups.
    pub(crate) fn members(&self) -> Result<BTreeSet<i32>, CgroupError> {
        let mut members = BTreeSet::new();
        for (_, dir) in &self.dirs {
            let text = read(&dir.join("cgroup.procs"))?;
            members.extend(text.lines().filter_map(|line| line.trim().parse::<i32>().ok()));
        }
        Ok(members)
    }

    /// One round of killing: SIGKILL to every member, then thaw, as a frozen process does not die (freezer v1).
    /// The pid namespace's init is killed by its pidfd before; this is what remains if that was not enough.
    pub(crate) fn kill_members(&self) -> Result<usize, CgroupError> {
        let members = self.members()?;
        for number in &members {
            if let Some(pid) = Pid::from_raw(*number) {
                kill_member(pid, self)?;
            }
        }
        write_text(&self.file(Controller::Freezer, "freezer.state"), "THAWED")?;
        Ok(members.len())
    }

    /// Processor time so far.
    pub(crate) fn cpu(&self) -> Result<CpuTime, CgroupError> {
        let us = |name| Ok(number(&self.file(Controller::Cpuacct, name))? / 1000);
        Ok(CpuTime {
            total: us("cpuacct.usage")?,
            user_ticks: us("cpuacct.usage_user")?,
            system_ticks: us("cpuacct.usage_sys")?,
        })
    }

    /// All counters; one that this kernel lacks is absent.
    pub(crate) fn counters(&self) -> Counters {
        let keyed = |controller, file: &str, key: &str| {
            let text = read(&self.file(controller, file)).unwrap_or_default();
            text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
        };
        let plain = |controller, file: &str| number(&self.file(controller, file)).ok();
        Counters {
            cpu: self.cpu().ok(),
            throttled_us: keyed(Controller::Cpu, "cpu.stat", "throttled_time ").map(|nanos| nanos / 1000),
            memory_peak_bytes: plain(Controller::Memory, "memory.memsw.max_usage_in_bytes")
                .or_else(|| plain(Controller::Memory, "memory.max_usage_in_bytes")),
            pids_peak: plain(Controller::Pids, "pids.peak"),
            oom_kills: keyed(Controller::Memory, "memory.oom_control", "oom_kill "),
            forks_refused: keyed(Controller::Pids, "pids.events", "max "),
        }
    }

    /// Removes the groups. EBUSY while the kernel still lets go of the last member: the caller tries again.
    pub(crate) fn remove(&mut self) -> Result<(), CgroupError> {
        while let Some((_, dir)) = self.dirs.last() {
            remove_dir(dir)?;
            self.dirs.truncate(self.dirs.len().saturating_sub(1));
        }
        Ok(())
    }
}

/// Quota of one period, microseconds.
fn cpu_quota_us(limits: &Limits) -> u64 {
    limits.cpu_millis * (CPU_PERIOD_US / 1000)
}

/// Kills by pidfd, after seeing that the number still is a member: a number can be reused, a pidfd cannot.
pub(super) fn kill_member(pid: Pid, group: &Cgroup) -> Result<(), CgroupError> {
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => {
            if group.members()?.contains(&pid.as_raw_nonzero().get()) {
                match rustix::process::pidfd_send_signal(&pidfd, Signal::KILL) {
                    Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                    Err(errno) => tracing::warn!(pid = pid.as_raw_nonzero(), error = %errno, "cannot kill a member"),
                }
            }
        }
        Err(rustix::io::Errno::SRCH) => {}
        Err(errno) => tracing::warn!(pid = pid.as_raw_nonzero(), error = %errno, "cannot open a member"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_exact_in_sum_and_split_by_ticks() {
        let time = |total, user_ticks, system_ticks| CpuTime { total, user_ticks, system_ticks };
        assert_eq!(time(10_500, 8000, 0).split(), (10_500, 0));
        assert_eq!(time(10_500, 0, 4000).split(), (0, 10_500));
        assert_eq!(time(900, 0, 0).split(), (900, 0));
        assert_eq!(time(12_000, 4000, 8000).since(time(0, 0, 0)).split(), (4000, 8000));
        assert_eq!(time(5000, 4000, 0).since(time(6000, 8000, 0)).split(), (0, 0));
    }

    #[test]
    fn membership_is_read_for_every_controller() {
        let dirs = vec![
            (vec![Controller::Memory], PathBuf::from("/sys/fs/cgroup/memory/toolcell/i/cell-1")),
            (vec![Controller::Cpu, Controller::Cpuacct], PathBuf::from("/sys/fs/cgroup/cpu,cpuacct/toolcell/i/cell-1")),
        ];
        let group = Cgroup { dirs };
        assert!(group.is_in("4:memory:/toolcell/i/cell-1\n3:cpu,cpuacct:/toolcell/i/cell-1\n"));
        assert!(!group.is_in("4:memory:/toolcell/i/cell-1\n3:cpu,cpuacct:/\n"));
        assert!(!group.is_in("4:memory:/toolcell/i/cell-1\n"));
        assert!(!group.is_in("4:memory:/toolcell/i/cell-11\n3:cpu,cpuacct:/toolcell/i/cell-1\n"));
    }
}
