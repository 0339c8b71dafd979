//! Which host ids an instance has: root's takes a range of the machine's, an ordinary user's what that user may give.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use toolcell_cell::CellIds;

use super::error::ServeError;
use super::settings::Settings;
use super::state::{Owner, Owners, State};
use super::{contained, ids, rootless};

/// In a range of root's the daemon and the signer have the first two ids.
const SIGNER_OFFSET: u32 = 1;
/// Those before are the daemon's, the signer's and later parts'.
const FIRST_CELL_ID: u32 = 16;
/// More than the launcher takes at once; a range of root's holds them.
const CELLS: u32 = 2048;

/// Ids that a range of root's needs at least.
pub(super) const IDS_USED: u32 = FIRST_CELL_ID + 2 * CELLS;

/// The ids of an instance, as long as it lives.
#[derive(Debug)]
pub(super) struct Tenure {
    /// Those of cells.
    pub(super) ids: CellIds,
    /// Who the parts run as and the state belongs to.
    pub(super) owners: Owners,
    /// Whether this process is an ordinary user's, in a user namespace of its own by now.
    pub(super) is_rootless: bool,
    /// Why cells have no ids of their own, if so.
    pub(super) no_ids: Option<String>,
    /// Whether every process of this instance's earlier life was seen gone, or is about to be.
    pub(super) leftovers_gone: bool,
    /// The lock of the ids, and its file.
    pub(super) lock: Option<(OwnedFd, PathBuf)>,
}

impl Tenure {
    /// A range of the machine's. Enters namespaces where root lacks the privilege to do without.
    pub(super) fn of_root(settings: &Settings) -> Result<Self, ServeError> {
        contained::enter_if_needed().map_err(|source| ServeError::Contained { source })?;
        let range = ids::lock(&settings.runtime.join("uids"), settings.uid_base)?;
        let owner = |id| Owner { uid: id, gid: id };
        let first = range.base + FIRST_CELL_ID;
        Ok(Self {
            ids: CellIds::Range { uid: first, gid: first, cells: CELLS },
            owners: Owners { daemon: owner(range.base), signer: owner(range.base + SIGNER_OFFSET) },
            is_rootless: false,
            no_ids: None,
            // The cgroups are swept before anything is started.
            leftovers_gone: true,
            lock: Some((range.lock, range.path)),
        })
    }

    /// The user's own id for the parts, and for cells what the user may give away. Enters the namespaces.
    pub(super) fn without_root(settings: &Settings, state: &State) -> Result<Self, ServeError> {
        let own = Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
        let rootless = rootless::enter(&settings.runtime, state)?;
        Ok(Self {
            ids: rootless.ids,
            owners: Owners { daemon: own, signer: own },
            is_rootless: true,
            no_ids: rootless.no_ids,
            leftovers_gone: rootless.leftovers_gone,
            lock: rootless.lock,
        })
    }

    /// Takes away the lock's file, for a start that fails before anything else is made.
    pub(super) fn remove_lock(&self) {
        if let Some((_, path)) = &self.lock
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::warn!(path = %path.display(), %error, "a lock file stays behind");
        }
    }
}
