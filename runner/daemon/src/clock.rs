//! The clocks of the daemon: wall time for what stands in receipts, monotonic time for everything that is measured.
//!
//! Guarantees: durations never come from wall time, which an administrator can set. Does not: sleep or fire timers;
//! those are tokio's, on CLOCK_MONOTONIC as well.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use toolcell_receipts::UnixMicros;

/// Where time comes from; an argument everywhere, so that tests can hold it still.
pub(crate) trait Clock: Send + Sync + std::fmt::Debug {
    /// Time of day (CLOCK_REALTIME).
    fn wall(&self) -> UnixMicros;
    /// Time since some fixed point, without the time asleep (CLOCK_MONOTONIC).
    fn monotonic(&self) -> Duration;
    /// Time since the machine was started, with the time asleep (CLOCK_BOOTTIME).
    fn since_boot(&self) -> Duration;
}

/// The machine's own clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "the one place of this crate where clocks are read")]
impl Clock for SystemClock {
    fn wall(&self) -> UnixMicros {
        UnixMicros(micros(duration(clock_gettime(ClockId::Realtime))))
    }

    fn monotonic(&self) -> Duration {
        duration(clock_gettime(ClockId::Monotonic))
    }

    fn since_boot(&self) -> Duration {
        duration(clock_gettime(ClockId::Boottime))
    }
}

/// A duration in whole microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A time before 1970 reads as 0.
fn duration(at: Timespec) -> Duration {
    match (u64::try_from(at.tv_sec), u32::try_from(at.tv_nsec)) {
        (Ok(seconds), Ok(nanos)) => Duration::new(seconds, nanos),
        _before_1970 => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_time_does_not_go_back() {
        let clock = SystemClock;
        let (earlier, earlier_boot) = (clock.monotonic(), clock.since_boot());
        assert!(clock.monotonic() >= earlier && clock.since_boot() >= earlier_boot);
    }

    #[test]
    fn wall_time_is_of_this_age() {
        assert!(SystemClock.wall() > UnixMicros(1_700_000_000_000_000));
    }

    #[test]
    fn a_time_before_1970_is_the_beginning() {
        assert_eq!(duration(Timespec { tv_sec: -1, tv_nsec: 5 }), Duration::ZERO);
        assert_eq!(micros(duration(Timespec { tv_sec: 1, tv_nsec: 5_000 })), 1_000_005);
    }
}
