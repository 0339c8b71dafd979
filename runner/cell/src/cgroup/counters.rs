//! What is read of a group, the same for both versions.

use toolcell_types::Fact;

/// A limit as asked for and as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadBack {
    /// The kernel's file.
    pub(crate) name: &'static str,
    pub(crate) wanted: Fact,
    pub(crate) got: Fact,
}

impl ReadBack {
    /// Whether the kernel has what was asked for.
    pub(crate) fn agrees(&self) -> bool {
        self.got == self.wanted
    }
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

/// The files that tell of a limit that was reached, as reports name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Witnesses {
    pub(crate) cpu: &'static str,
    pub(crate) oom_kills: &'static str,
    pub(crate) forks_refused: &'static str,
}

impl Witnesses {
    /// Of no group.
    pub(super) const NONE: Self = Self { cpu: "nothing", oom_kills: "nothing", forks_refused: "nothing" };
}

/// Processor time of a group, microseconds. The sum is exact. Of its two parts version 1 tells ticks (4 ms at 250 Hz),
/// version 2 what the kernel made of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) total: u64,
    pub(super) user: u64,
    pub(super) system: u64,
}

impl CpuTime {
    /// What was used since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }

    /// User and system time: the exact sum, split as its parts are, which is how the kernel itself reports a process
    /// (cputime_adjust in kernel/sched/cputime.c): without a system part all is user time.
    pub(crate) fn split(self) -> (u64, u64) {
        let parts = u128::from(self.user) + u128::from(self.system);
        let system = (u128::from(self.total) * u128::from(self.system)).checked_div(parts).unwrap_or(0);
        let system = u64::try_from(system).unwrap_or(self.total).min(self.total);
        (self.total - system, system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_exact_in_sum_and_split_by_its_parts() {
        let time = |total, user, system| CpuTime { total, user, system };
        assert_eq!(time(10_500, 8000, 0).split(), (10_500, 0));
        assert_eq!(time(10_500, 0, 4000).split(), (0, 10_500));
        assert_eq!(time(900, 0, 0).split(), (900, 0));
        assert_eq!(time(12_000, 4000, 8000).since(time(0, 0, 0)).split(), (4000, 8000));
        assert_eq!(time(5000, 4000, 0).since(time(6000, 8000, 0)).split(), (0, 0));
    }
}
