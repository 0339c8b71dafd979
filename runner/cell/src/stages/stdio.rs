//! The tool's session and its three descriptors.

use std::os::fd::{AsFd as _, AsRawFd as _};

use toolcell_types::ControlId;

use super::CellSpec;
use crate::record::{At as _, Op, Stage, StageError};

/// A session of its own: no controlling terminal, nothing to inject keystrokes into.
pub(super) fn enter_session() -> Result<(), StageError> {
    let _session = nix::unistd::setsid().at(Stage::Stdio, Op::Setsid)?;
    toolcell_sys::reset_signals().at(Stage::Stdio, Op::Setsid)
}

/// 0 from the sealed file or /dev/null, 1 and 2 to the pipes; from 3 up only the control socket stays, until exec.
pub(super) fn install(spec: &CellSpec<'_>) -> Result<(), StageError> {
    match &spec.stdin {
        Some(file) => {
            require_seals(file.as_fd(), Stage::Stdio)?;
            // The daemon wrote through the same open file, whose position is now at its end.
            let _start = rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0)).at(Stage::Stdio, Op::Dup)?;
            rustix::stdio::dup2_stdin(file).at(Stage::Stdio, Op::Dup)?;
        }
        None => {
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
            let null =
                rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty()).at(Stage::Stdio, Op::OpenNull)?;
            rustix::stdio::dup2_stdin(&null).at(Stage::Stdio, Op::Dup)?;
        }
    }
    rustix::stdio::dup2_stdout(&spec.stdout).at(Stage::Stdio, Op::Dup)?;
    rustix::stdio::dup2_stderr(&spec.stderr).at(Stage::Stdio, Op::Dup)?;
    if spec.off.has(ControlId::FdsClosed) {
        return keep_open();
    }
    // All that the set-up needed is closed here; what is left closes at exec.
    let mut left = vec![spec.control.as_raw_fd()];
    left.extend(spec.trial_dir.as_ref().map(|dir| dir.as_raw_fd()));
    toolcell_sys::close_except(&left).at(Stage::Stdio, Op::CloseFds)?;
    rustix::io::fcntl_setfd(&spec.control, rustix::io::FdFlags::CLOEXEC).at(Stage::Stdio, Op::CloseFds)
}

/// Paths that the launcher and the set-up have open (O_PATH) stay open in the tool: folders of the machine, which lead on.
/// Nothing else does: an open file is shared with the launcher, which judges this and other cells by its timers, its
/// epoll, its sockets and its locks.
fn keep_open() -> Result<(), StageError> {
    let entries = std::fs::read_dir("/proc/self/fd").at(Stage::Stdio, Op::ListFds)?;
    for entry in entries {
        let path = entry.at(Stage::Stdio, Op::ListFds)?.path();
        let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        if let Some(number @ 3..) = number
            && toolcell_sys::is_path_only(number)
        {
            toolcell_sys::keep_over_exec(number).at(Stage::Stdio, Op::ListFds)?;
        }
    }
    Ok(())
}

/// The cell's own /dev/null in the place of the launcher's three descriptors.
pub(super) fn silence() -> Result<(), StageError> {
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty()).at(Stage::Stdio, Op::OpenNull)?;
    rustix::stdio::dup2_stdin(&null).at(Stage::Stdio, Op::Dup)?;
    rustix::stdio::dup2_stdout(&null).at(Stage::Stdio, Op::Dup)?;
    rustix::stdio::dup2_stderr(&null).at(Stage::Stdio, Op::Dup)
}

/// A file that came from the daemon must be a sealed memfd: neither the tool nor the daemon can change it any more.
pub(super) fn require_seals(file: std::os::fd::BorrowedFd<'_>, stage: Stage) -> Result<(), StageError> {
    use rustix::fs::SealFlags;
    let seals = rustix::fs::fcntl_get_seals(file).at(stage, Op::ReadPlan)?;
    if seals.contains(SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW) {
        Ok(())
    } else {
        Err(StageError::new(stage, Op::ReadPlan, nix::libc::EPERM))
    }
}
