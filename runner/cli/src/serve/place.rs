//! The named place of an instance, looked at without changing it: would a start find its state and its socket free and fit?
//! And a place beside it, in which a start can be tried.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use toolcell_types::ControlId;

use super::error::{ServeError, file};
use super::holder::Serving;
use super::settings::{self, Settings};
use super::trial_home::TrialHome;
use super::{checks, holder, listener, own_places, state};
use crate::args::ServeArgs;

/// What a start with these options would use.
#[derive(Debug)]
pub(crate) struct Place {
    settings: Settings,
}

impl Place {
    /// By the options, the settings file and the defaults.
    ///
    /// # Errors
    /// As a start: a machine, a user or a settings file for which there is none.
    pub(crate) fn of(args: &ServeArgs) -> Result<Self, ServeError> {
        checks::machine()?;
        let places = own_places().map_err(|source| ServeError::Rootless { source })?;
        Ok(Self { settings: settings::of(args, &places)? })
    }

    /// Controls that the operator accepted as missing.
    pub(crate) fn accepted(&self) -> &[ControlId] {
        &self.settings.accept_unavailable
    }

    /// Whether a start would find its place: who has it, and what is wrong with it. Leaves nothing behind: beside the socket
    /// another is made and removed.
    ///
    /// # Errors
    /// What the start would say.
    pub(crate) fn look(&self) -> Result<(), ServeError> {
        holder::look(&self.settings)?;
        state::look(&self.settings.state)?;
        let socket = &self.settings.socket;
        listener::check_path(socket)?;
        match socket.symlink_metadata() {
            Ok(seen) if !seen.file_type().is_socket() => return Err(listener::no_socket(socket)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return file("look at", socket, Err(error)),
            Ok(_) | Err(_) => {}
        }
        listener::try_folder(socket)
    }

    /// The toolcell that serves here already, if one does.
    ///
    /// # Errors
    /// It cannot be asked.
    pub(crate) fn serving(&self) -> Result<Option<Serving>, ServeError> {
        holder::serving(&self.settings)
    }

    /// Makes the folder of a trial where the state is, or will be: on the file system that the state is to be on.
    ///
    /// # Errors
    /// There is no such folder, or nothing can be made in it.
    pub(crate) fn make_trial_home(&self) -> Result<TrialHome, ServeError> {
        let device = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
        let there = |path: &&Path| path.is_dir();
        let state = self.settings.state.as_path();
        let nearest = state.ancestors().find(there).unwrap_or(Path::new("/"));
        // Beside a state that is there, unless it is a file system of its own.
        let beside = state.parent().filter(|beside| nearest == state && device(beside) == device(state));
        let base = beside.unwrap_or(nearest);
        TrialHome::make(base, &self.settings.runtime)
    }
}

/// Whether somebody answers there.
pub(super) fn is_served(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}
