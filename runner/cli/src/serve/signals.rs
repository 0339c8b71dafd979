//! Signals that ask for the end, from when there is something to clean up until the launcher takes over.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::error::{ServeError, call};

/// SIGTERM, SIGINT and SIGHUP, held back. They stay so over the exec of the launcher, which looks for them itself.
#[derive(Debug)]
pub(super) struct Signals(SignalFd);

impl Signals {
    /// Holds them back from now on.
    pub(super) fn hold() -> Result<Self, ServeError> {
        let set: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect();
        call("sigprocmask", set.thread_block())?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self(call("signalfd", SignalFd::with_flags(&set, flags))?))
    }
}

impl AsFd for Signals {
    /// Readable once one has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
