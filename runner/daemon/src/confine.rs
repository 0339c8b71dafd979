//! What is left to the daemon: plain files of its state, the descriptors that it was given, and a list of system calls.
//!
//! Guarantees: see `runner/confinement`; nothing of what the daemon reads from others is parsed before.

use std::os::fd::AsFd as _;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use toolcell_confinement::{AccessFs, BitFlags, Calls, Confined, Confinement, ConfinementError, User};

use crate::{DaemonConfig, DaemonError};

/// The state's name in the daemon's own root.
pub(crate) const STATE: &str = "state";
/// What of the state is the signer's and the starting process's. File modes keep the daemon from it where it is a user of
/// its own; without root it is not.
const NOT_OURS: [&str; 5] = ["signer", "instance", "ids", "lock", "ablation"];
/// The system calls that it may make, with the reason for each.
const CALLS: &str = include_str!("../filters/daemon.json");
/// 512 connections, 64 calls with two pipes and two memory files each, the state, and room.
const DESCRIPTORS: u64 = 4096;

/// Gives up everything that is not needed. The descriptors of the state and of the policy directory go, too: from them
/// the host's files could be reached (openat(2) with `..`).
///
/// # Errors
/// [`DaemonError`]; the process must then end.
pub(crate) fn confine(mut config: DaemonConfig) -> Result<DaemonConfig, DaemonError> {
    let system = |source| DaemonError::System { doing: "raise its limit of descriptors", source };
    raise_descriptor_limit().map_err(system)?;
    let confined = enter(&config).map_err(|source| DaemonError::Sandbox { source })?;
    tracing::info!(landlock = %confined.landlock, "the daemon is confined");
    config.policy = None;
    // Replaced by the bound directory, which has nothing above it.
    config.state = confined.folder;
    Ok(config)
}

fn enter(config: &DaemonConfig) -> Result<Confined, ConfinementError> {
    toolcell_confinement::confine(&Confinement {
        folder: config.state.as_fd(),
        at: STATE,
        hidden: &NOT_OURS,
        rights: rights(),
        user: match config.is_rootless {
            true => User::Remain,
            false => User::Become { uid: config.uid, gid: config.gid },
        },
        calls: &Calls::compile(CALLS)?,
    })
}

/// Plain files and nothing else: no links, sockets, pipes or devices, no new folders, nothing to execute. A folder may be
/// removed, as one may lie where output is kept that was half written.
fn rights() -> BitFlags<AccessFs> {
    AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
}

/// Connections and pipes need more descriptors than the 1024 that a process has by custom.
fn raise_descriptor_limit() -> std::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })?)
}

#[cfg(test)]
mod tests;
