//! Monotonic time and the timers made of it. A stepped wall clock moves nothing here.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_gettime, timerfd_settime,
};

/// CLOCK_MONOTONIC in microseconds.
#[expect(clippy::disallowed_methods, reason = "the one place of this crate where a clock is read")]
pub(crate) fn monotonic_us() -> u64 {
    to_us(clock_gettime(ClockId::Monotonic))
}

fn to_us(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000)
}

/// A one-shot timer that is readable once it has expired (timerfd_create(2)).
#[derive(Debug)]
pub(crate) struct Timer(OwnedFd);

impl Timer {
    /// Not running yet.
    pub(crate) fn new() -> rustix::io::Result<Self> {
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK).map(Self)
    }

    /// Expires in `us` microseconds from now, at least one.
    pub(crate) fn start(&self, us: u64) -> rustix::io::Result<()> {
        let us = us.max(1);
        let it_value = Timespec {
            tv_sec: i64::try_from(us / 1_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(us % 1_000_000).unwrap_or(0) * 1000,
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(self.0.as_fd(), TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value }).map(drop)
    }

    /// Stops it.
    pub(crate) fn stop(&self) -> rustix::io::Result<()> {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let never = Itimerspec { it_interval: none, it_value: none };
        timerfd_settime(self.0.as_fd(), TimerfdTimerFlags::empty(), &never).map(drop)
    }

    /// Microseconds until it expires, as the kernel has them; 0 if it is not running or has expired.
    pub(crate) fn left_us(&self) -> rustix::io::Result<u64> {
        timerfd_gettime(self.0.as_fd()).map(|spec| to_us(spec.it_value))
    }

    /// The descriptor to poll.
    pub(crate) fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_timer_reads_back_as_running() {
        let timer = Timer::new().unwrap();
        assert_eq!(timer.left_us().unwrap(), 0);
        timer.start(60_000_000).unwrap();
        let left = timer.left_us().unwrap();
        assert!(left > 50_000_000 && left <= 60_000_000, "{left}");
        timer.stop().unwrap();
        assert_eq!(timer.left_us().unwrap(), 0);
    }
}
