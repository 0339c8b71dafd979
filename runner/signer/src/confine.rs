//! What is left to the signer: plain files of its folder, the socket that it was given, and a short list of system calls.

use std::os::fd::{AsFd as _, OwnedFd};

use toolcell_confinement::{AccessFs, BitFlags, Calls, Confinement, ConfinementError, User};

/// The folder's name in the signer's own root.
const FOLDER: &str = "signer";
/// The system calls that it may make, with the reason for each.
const CALLS: &str = include_str!("../filters/signer.json");

/// Gives up everything but this folder and the descriptors that are open, and returns the folder as it is to be used from
/// then on: nothing of the host is above it.
///
/// # Errors
/// [`ConfinementError`]; the process must then end.
pub fn confine(folder: OwnedFd, user: User) -> Result<OwnedFd, ConfinementError> {
    let confined = toolcell_confinement::confine(&Confinement {
        folder: folder.as_fd(),
        at: FOLDER,
        hidden: &[],
        rights: rights(),
        user,
        calls: &Calls::compile(CALLS)?,
    })?;
    tracing::info!(landlock = %confined.landlock, "the signer is confined");
    Ok(confined.folder)
}

/// Plain files in the one folder, and nothing else.
fn rights() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::RemoveFile
}

#[cfg(test)]
mod tests;
