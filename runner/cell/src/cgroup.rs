//! One noun for control groups: make, limit, read back, kill, count, remove. What differs between cgroup versions is
//! in here and nowhere else; so far that is version 1, whose controllers each have a tree of their own.
//!
//! A thin module of our own instead of cgroups-rs: the crate cannot kill on v1, cannot address another root than
//! /sys/fs/cgroup, reads neither pids.events nor the user and system parts of cpuacct, swallows write errors of
//! further attributes, and brings a D-Bus client into the privileged process (see ARCHITECTURE.md).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use toolcell_types::{CellId, Limits};

/// Why groups cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// No v1 hierarchy has this controller.
    #[error("no cgroup v1 hierarchy with the {controller} controller is mounted")]
    NoController {
        /// Which one.
        controller: &'static str,
    },
    /// A file or directory of the hierarchy could not be used.
    #[error("cannot {action} {path}")]
    Access {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A limit reads back as something else than was written.
    #[error("{path} reads back as {got}, expected {wanted}")]
    Mismatch {
        /// Which file.
        path: PathBuf,
        /// What was written.
        wanted: String,
        /// What is there.
        got: String,
    },
    /// A counter is no number.
    #[error("{path} holds {got:?}, expected a number")]
    NotANumber {
        /// Which file.
        path: PathBuf,
        /// What is there.
        got: String,
    },
}

impl CgroupError {
    /// The errno behind it.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Self::Access { source, .. } => source.raw_os_error().unwrap_or(nix::libc::EIO),
            Self::NoController { .. } => nix::libc::ENODEV,
            Self::Mismatch { .. } | Self::NotANumber { .. } => nix::libc::EPROTO,
        }
    }
}

/// A controller that a cell needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    Memory,
    Cpu,
    Cpuacct,
    Pids,
    Freezer,
}

impl Controller {
    const ALL: [Self; 5] = [Self::Memory, Self::Cpu, Self::Cpuacct, Self::Pids, Self::Freezer];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Pids => "pids",
            Self::Freezer => "freezer",
        }
    }
}

/// Group of all instances below each hierarchy's root, unless the operator names another.
const PARENT: &str = "toolcell";

/// Kills and removes what an earlier life of this instance left in its groups. Once it returns, nothing of that life
/// runs any more. For who holds the instance's lock and has not started its parts yet.
///
/// # Errors
/// [`CgroupError`]: groups cannot be used here, or something is left that cannot be killed. No cell can be had then.
pub fn sweep(parent: Option<&str>, instance: &str) -> Result<(), CgroupError> {
    Instance::open(parent, instance)?.remove()
}

/// The groups of one instance, below which each cell gets its own.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Directory of the instance per hierarchy; controllers that share a hierarchy share a directory.
    roots: Vec<(Vec<Controller>, PathBuf)>,
}

impl Instance {
    /// Finds the hierarchies, makes the instance's group in each, and removes what an earlier life of this very
    /// instance left (its processes are killed first).
    pub(crate) fn open(parent: Option<&str>, instance: &str) -> Result<Self, CgroupError> {
        let parent = parent.unwrap_or(PARENT);
        let mounts = read(Path::new("/proc/self/mountinfo"))?;
        let mut roots: Vec<(Vec<Controller>, PathBuf)> = Vec::new();
        for controller in Controller::ALL {
            let hierarchy = hierarchy(&mounts, controller.name())
                .ok_or(CgroupError::NoController { controller: controller.name() })?;
            let path = hierarchy.join(parent).join(instance);
            match roots.iter_mut().find(|(_, known)| *known == path) {
                Some((controllers, _)) => controllers.push(controller),
                None => roots.push((vec![controller], path)),
            }
        }
        for (_, root) in &roots {
            fs::create_dir_all(root).map_err(access("make", root))?;
        }
        let opened = Self { roots };
        opened.sweep()?;
        Ok(opened)
    }

    /// Kills and removes everything below the instance's groups.
    fn sweep(&self) -> Result<(), CgroupError> {
        for (_, root) in &self.roots {
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
    pub(crate) fn remove(&self) -> Result<(), CgroupError> {
        for (_, root) in &self.roots {
            remove_dir(root)?;
            // The common parent goes with the last instance; others may still use it.
            if let Some(parent) = root.parent() {
                match fs::remove_dir(parent) {
                    Ok(()) => {}
                    Err(error)
                        if matches!(
                            error.raw_os_error(),
                            Some(nix::libc::EBUSY | nix::libc::ENOTEMPTY | nix::libc::ENOENT)
                        ) => {}
                    Err(error) => return Err(access("remove", parent)(error)),
                }
            }
        }
        Ok(())
    }

    /// Makes the groups of one cell and sets its limits, each read back.
    pub(crate) fn create(&self, cell: CellId, limits: &Limits) -> Result<Cgroup, CgroupError> {
        let mut made = Cgroup { dirs: Vec::with_capacity(self.roots.len()) };
        let built = self.roots.iter().try_for_each(|(controllers, root)| {
            let dir = root.join(format!("cell-{cell}"));
            fs::create_dir(&dir).map_err(access("make", &dir))?;
            made.dirs.push((controllers.clone(), dir.clone()));
            let members = read(&dir.join("cgroup.procs"))?;
            if members.trim().is_empty() { Ok(()) } else { mismatch(&dir.join("cgroup.procs"), "no member", &members) }
        });
        match built.and_then(|()| made.limit(limits)) {
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

/// Mount point of the v1 hierarchy with this controller, from mountinfo (proc(5)): the superblock options name it.
fn hierarchy(mountinfo: &str, controller: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (mount, superblock) = line.split_once(" - ")?;
        let mut fields = superblock.split(' ');
        let is_v1 = fields.next() == Some("cgroup");
        let has = fields.next_back().is_some_and(|options| options.split(',').any(|option| option == controller));
        (is_v1 && has).then(|| mount.split(' ').nth(4).map(PathBuf::from)).flatten()
    })
}

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
    fn file(&self, controller: Controller, name: &str) -> PathBuf {
        let dir =
            self.dirs.iter().find(|(controllers, _)| controllers.contains(&controller)).map(|(_, dir)| dir.as_path());
        dir.unwrap_or(Path::new("/nonexistent")).join(name)
    }

    fn limit(&self, limits: &Limits) -> Result<(), CgroupError> {
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
fn kill_member(pid: Pid, group: &Cgroup) -> Result<(), CgroupError> {
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

fn sweep_group(path: &Path) -> Result<(), CgroupError> {
    let mut group = Cgroup { dirs: vec![(Controller::ALL.to_vec(), path.to_owned())] };
    // Bounded: what cannot be killed in these rounds is in the kernel's hands, and removal says so.
    for _round in 0..200 {
        let members = group.members()?;
        for number in &members {
            if let Some(pid) = Pid::from_raw(*number) {
                kill_member(pid, &group)?;
            }
        }
        let freezer = path.join("freezer.state");
        if freezer.exists() {
            write_text(&freezer, "THAWED")?;
        }
        if members.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    group.remove()
}

fn access(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |source| CgroupError::Access { action, path, source }
}

fn mismatch<T>(path: &Path, wanted: &str, got: &str) -> Result<T, CgroupError> {
    Err(CgroupError::Mismatch { path: path.to_owned(), wanted: wanted.to_owned(), got: got.trim().to_owned() })
}

fn read(path: &Path) -> Result<String, CgroupError> {
    fs::read_to_string(path).map_err(access("read", path))
}

fn number(path: &Path) -> Result<u64, CgroupError> {
    let text = read(path)?;
    text.trim().parse().map_err(|_parse| CgroupError::NotANumber { path: path.to_owned(), got: text.trim().to_owned() })
}

fn write(path: &Path, value: u64) -> Result<(), CgroupError> {
    write_text(path, &value.to_string())
}

/// Opens what the kernel made; never creates.
fn write_text(path: &Path, text: &str) -> Result<(), CgroupError> {
    let open = fs::OpenOptions::new().write(true).open(path);
    open.and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes())).map_err(access("write", path))
}

fn remove_dir(path: &Path) -> Result<(), CgroupError> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(access("remove", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
30 25 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct
32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,memory
";

    #[test]
    fn hierarchies_are_found_by_controller_not_by_name() {
        assert_eq!(hierarchy(MOUNTINFO, "memory"), Some(PathBuf::from("/sys/fs/cgroup/memory")));
        assert_eq!(hierarchy(MOUNTINFO, "cpuacct"), Some(PathBuf::from("/sys/fs/cgroup/cpu,cpuacct")));
        assert_eq!(hierarchy(MOUNTINFO, "pids"), None);
        assert_eq!(hierarchy(MOUNTINFO, "cpu,cpuacct"), None);
    }

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
