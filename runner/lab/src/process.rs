//! The one place where a process is started.

use std::ffi::OsStr;
use std::process::Command;

/// A program to be started.
#[expect(
    clippy::disallowed_methods,
    reason = "what a call is compared with, and what stands outside of a cell, is processes; nothing of a call's runs here"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}
