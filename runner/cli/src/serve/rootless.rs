//! What a start without root does instead: host ids for cells from the user's own subordinate range, and a user namespace
//! in which this process is privileged, and nowhere else.
//!
//! The namespace holds the user's own id and the ids of cells, each under its own number, so that ids mean the same
//! inside and outside. All that later needs privilege (mounts, maps of cells, looking at them) happens within it. Without
//! newuidmap or a range the namespace holds the user's own id alone, which cells then share.

mod block;
mod error;
mod leftovers;
mod maps;
mod subids;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::sched::CloneFlags;
use rustix::mount::{MountPropagationFlags, mount_change};
use toolcell_cell::CellIds;
use toolcell_doctor::remedies::NO_NEW_PRIVS;

use self::block::Block;
pub(crate) use self::error::RootlessError;
pub(super) use self::error::check_settings;
use super::error::ServeError;
use super::state::State;
use crate::paths::{Missing, Places};

/// What an ordinary user's instance has for its cells.
#[derive(Debug)]
pub(super) struct Rootless {
    /// Host ids of cells.
    pub(super) ids: CellIds,
    /// Why cells have no ids of their own, if so.
    pub(super) no_ids: Option<String>,
    /// Whether every process of this instance's earlier life was seen gone.
    pub(super) leftovers_gone: bool,
    /// The lock of the ids, and its file.
    pub(super) lock: Option<(OwnedFd, PathBuf)>,
}

/// The places of whoever starts this.
///
/// # Errors
/// [`RootlessError`] for an ordinary user without the variable that names one.
pub(crate) fn own_places() -> Result<Places, RootlessError> {
    Places::of_process().map_err(|missing| match missing {
        Missing::Runtime => {
            let login = PathBuf::from(format!("/run/user/{}", rustix::process::geteuid().as_raw()));
            RootlessError::NoRuntime { has_login: login.is_dir() }
        }
        Missing::Home => RootlessError::NoHome,
    })
}

/// Finds ids for cells and enters the namespaces.
///
/// # Errors
/// [`ServeError::Rootless`] where an ordinary user may not have a user namespace, with the setting that forbids it.
pub(super) fn enter(runtime: &Path, state: &State) -> Result<Rootless, ServeError> {
    let former = state.former_ids()?;
    let found = subids::of_process().and_then(|range| maps::Helpers::find().map(|helpers| (range, helpers)));
    let found = found.and_then(|found| can_gain_privilege().map(|()| found));
    let (block, no_ids) = match found {
        Ok((range, helpers)) => match block::lock(&runtime.join("uids"), &range, former)? {
            Some(block) => (Some((block, helpers)), None),
            None => (None, Some("all ids of the user's range are in use".to_owned())),
        },
        Err(why) => (None, Some(why)),
    };
    // While the processes of the whole machine have their own numbers.
    let leftovers_gone = match &block {
        Some((block, _)) => block.is_former_gone(former),
        None => leftovers::are_own_gone(),
    };
    let mapped = namespaces(block.as_ref().map(|(block, helpers)| (block, helpers)));
    let mapped = mapped.inspect_err(|_| block.iter().for_each(|(block, _)| block.remove_lock()))?;
    let kept = match mapped {
        Ok(()) => block.map(|(block, _)| block),
        // The range is no use without its maps; whoever wants it may have it.
        Err(_) => None,
    };
    let no_ids = no_ids.or(mapped.err());
    state.remember_ids(kept.as_ref().map(Block::uid))?;
    let ids = kept.as_ref().map_or(CellIds::Own, Block::cell_ids);
    Ok(Rootless { ids, no_ids, leftovers_gone, lock: kept.map(Block::into_lock) })
}

/// newuidmap has its privilege by its file, which counts for nothing once a process has given up on gaining any.
fn can_gain_privilege() -> Result<(), String> {
    match rustix::thread::no_new_privs() {
        Ok(false) => Ok(()),
        Ok(true) => Err(format!("{NO_NEW_PRIVS}, with which newuidmap gains no privilege")),
        Err(errno) => Err(format!("prctl(PR_GET_NO_NEW_PRIVS): {errno}")),
    }
}

/// Enters a user and a mount namespace; the value says why the range could not be mapped, if so.
fn namespaces(wanted: Option<(&Block, &maps::Helpers)>) -> Result<Result<(), String>, ServeError> {
    let refused = |source| ServeError::Rootless { source: error::refusal(source) };
    let mapped = match wanted {
        None => {
            toolcell_sys::unshare_with_own_user(CloneFlags::CLONE_NEWNS).map_err(refused)?;
            Ok(())
        }
        Some((block, helpers)) => {
            let own = maps::Own::of_process();
            let waiting = helpers
                .start(&own, block)
                .map_err(|source| ServeError::Rootless { source: RootlessError::Helper { source } })?;
            if let Err(errno) = nix::sched::unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS) {
                waiting.end();
                return Err(refused(errno.into()));
            }
            match waiting.write() {
                Ok(()) => maps::read_back(&own, block).map(|()| Ok(()))?,
                Err(why) => {
                    own.map_alone().map_err(refused)?;
                    Err(why)
                }
            }
        }
    };
    // For the parts, which are started by exec, and for the launcher, which this process becomes by exec.
    toolcell_sys::keep_capabilities_over_exec().map_err(|error| refused(std::io::Error::other(error)))?;
    // The first use of privilege: AppArmor lets the namespace be made and then refuses everything in it.
    let flags = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", flags).map_err(|errno| refused(errno.into()))?;
    Ok(mapped)
}
