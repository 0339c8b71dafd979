//! The cell's init once the tool is forked: no privilege, one duty.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::process::{Pid, WaitOptions, wait};

use super::Filters;
use crate::record::{At as _, MainEnd, Op, Record, Stage, StageError};

/// Keeps the control socket and nothing else: no capability, no descriptor of the host's, a filter of a dozen calls.
pub(super) fn harden(control: BorrowedFd<'_>, filters: &Filters) -> Result<(), StageError> {
    super::stdio::silence()?;
    toolcell_sys::close_except(&[control.as_raw_fd()]).at(Stage::Supervise, Op::CloseFds)?;
    super::capabilities::empty()?;
    super::capabilities::no_new_privs()?;
    super::seccomp::apply(&filters.init, true)
}

/// Reaps everything; reports the end of `main` with its time, then goes on reaping until the launcher kills the cell.
pub(super) fn reap(control: BorrowedFd<'_>, main: Pid) -> Result<(), StageError> {
    loop {
        match rustix::io::retry_on_intr(|| wait(WaitOptions::empty())) {
            Ok(Some((pid, status))) if pid == main => {
                let end = status
                    .exit_status()
                    .map(MainEnd::Exited)
                    .or_else(|| status.terminating_signal().map(MainEnd::Signaled))
                    .ok_or(StageError::new(Stage::Supervise, Op::Wait, nix::libc::EPROTO))?;
                let record = Record::Ended { end, at_us: crate::clock::monotonic_us() };
                let _sent = rustix::net::send(control, &record.encode(), rustix::net::SendFlags::NOSIGNAL)
                    .at(Stage::Supervise, Op::Send)?;
            }
            Ok(_) => {}
            // Nobody is left to reap: wait for the kill, which is on its way.
            Err(rustix::io::Errno::CHILD) => return park(control),
            Err(errno) => return Err(StageError::new(Stage::Supervise, Op::Wait, errno.raw_os_error())),
        }
    }
}

/// Blocks until the launcher closes the socket, which is until it is gone.
fn park(control: BorrowedFd<'_>) -> Result<(), StageError> {
    let mut byte = [0_u8; 1];
    loop {
        let (got, _) =
            rustix::io::retry_on_intr(|| rustix::net::recv(control, &mut byte, rustix::net::RecvFlags::empty()))
                .at(Stage::Supervise, Op::WaitParent)?;
        if got == 0 {
            return Ok(());
        }
    }
}
