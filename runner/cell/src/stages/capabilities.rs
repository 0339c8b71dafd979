//! All five capability sets empty, and no way to get any back by exec.

use crate::record::{At as _, Op, Stage, StageError};

/// Ambient, bounding, effective, permitted, inheritable.
pub(super) fn empty() -> Result<(), StageError> {
    toolcell_sys::empty_capabilities().map_err(|_error| {
        let errno = rustix::io::Errno::PERM.raw_os_error();
        StageError::new(Stage::Capabilities, Op::CapSet, errno)
    })
}

/// Every capability of the cell's user namespace, and exec keeps them: what a tool has if nothing is taken from it.
pub(super) fn keep() -> Result<(), StageError> {
    toolcell_sys::keep_capabilities_over_exec().map_err(|_error| {
        let errno = rustix::io::Errno::PERM.raw_os_error();
        StageError::new(Stage::Capabilities, Op::KeepCaps, errno)
    })
}

/// The one place that decides the bit; Landlock and seccomp set it again, harmlessly.
pub(super) fn no_new_privs() -> Result<(), StageError> {
    rustix::thread::set_no_new_privs(true).at(Stage::NoNewPrivs, Op::NoNewPrivs)
}
