//! The plan: what the launcher reads (*prepare*) and what only the cell's init reads (*go*), the latter and standard
//! input in sealed memory files whose descriptors travel with the packet.
//!
//! Guarantees: a memory file cannot be changed any more once it leaves here (fcntl(2), F_ADD_SEALS); a plan that cannot
//! be made is carried on as one, because the intent is signed and an outcome has to follow. Does not: send it.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use toolcell_images::Image;
use toolcell_policy::AdmittedCall;
use toolcell_receipts::statement::Definition;
use toolcell_types::CellId;
use toolcell_types::plan::{CallerIds, GO_MAX_BYTES, Go, PlanMount, Prepare, ToLauncher};

use crate::calls::Place;
use crate::daemon::Daemon;
use crate::identify::Peer;
use crate::intent::Intended;
use crate::launcher::{LauncherError, Packet};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanFault {
    /// A memory file could not be made.
    #[error("no memory file for the {what}")]
    Memory {
        /// What it was for.
        what: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The go half could not be encoded.
    #[error("the plan cannot be encoded")]
    Encode {
        /// What postcard said.
        source: postcard::Error,
    },
    /// The go half is too large.
    #[error("arguments and environment make {got} bytes, at most {GO_MAX_BYTES} can be passed on")]
    TooLarge {
        /// Its size in bytes.
        got: usize,
    },
    /// The prepare half is too large.
    #[error("the plan does not fit a packet")]
    Packet {
        /// Why.
        source: LauncherError,
    },
    /// There is no such image.
    #[error("there is no image {name:?}")]
    NoImage {
        /// Its name.
        name: String,
    },
}

/// A packet for a cell.
#[derive(Debug)]
pub(crate) struct Launch {
    /// The cell's number.
    pub(crate) cell: CellId,
    /// The launch.
    pub(crate) packet: Packet,
}

/// What of a call is still needed once its plan is made: arguments and standard input are not.
#[derive(Debug)]
pub(crate) struct Pending {
    /// What is going to run, as the intent says.
    pub(crate) definition: Definition,
    /// Index of the intent.
    pub(crate) intent_index: u64,
    /// Whether `deadline_ms` is shorter than the limit of the wall clock.
    pub(crate) is_deadline_shorter: bool,
    /// Exit codes that mean success.
    pub(crate) complete_exit_codes: Vec<i32>,
    /// Exit codes that mean "try again".
    pub(crate) transient_exit_codes: Vec<i32>,
    /// The call's place.
    pub(crate) place: Place,
}

/// A call with its plan, or with the reason why there is none.
#[derive(Debug)]
pub(crate) struct Planned {
    pending: Pending,
    launch: Result<Launch, PlanFault>,
}

impl Planned {
    /// Apart, to be carried on.
    pub(crate) fn into_parts(self) -> (Pending, Result<Launch, PlanFault>) {
        (self.pending, self.launch)
    }
}

/// Makes the plan.
pub(crate) fn make(daemon: &Daemon, intended: Intended) -> Planned {
    let (admitted, definition, intent_index) = intended.into_parts();
    let (call, asked, place) = admitted.into_parts();
    let launch = launch(daemon, &call, (&definition, asked.identity().peer()));
    let pending = Pending {
        is_deadline_shorter: definition.limits.wall_ms < call.limits.wall_ms,
        definition,
        intent_index,
        complete_exit_codes: call.complete_exit_codes,
        transient_exit_codes: call.transient_exit_codes,
        place,
    };
    Planned { pending, launch }
}

fn launch(daemon: &Daemon, call: &AdmittedCall, (definition, peer): (&Definition, &Peer)) -> Result<Launch, PlanFault> {
    let no_image = || PlanFault::NoImage { name: call.image.clone() };
    let Image { entries, .. } = toolcell_images::find(&call.image).ok_or_else(no_image)?;
    let mut descriptors = vec![go(call)?];
    if let Some(bytes) = &call.stdin {
        descriptors.push(sealed("standard input", bytes)?);
    }
    let cell = daemon.launcher.next_cell();
    let prepare = Prepare {
        limits: definition.limits,
        image: entries,
        mounts: call
            .mounts
            .iter()
            .map(|mount| PlanMount { host: &mount.host, inside: &mount.inside, within: &mount.within })
            .collect(),
        caller: CallerIds { uid: peer.uid, gid: peer.gid, groups: peer.groups.clone() },
        accept_unavailable: daemon.accept_unavailable.clone(),
    };
    let message = ToLauncher::Launch { cell, has_stdin: call.stdin.is_some(), prepare };
    let packet = Packet::new(&message, descriptors).map_err(|source| PlanFault::Packet { source })?;
    Ok(Launch { cell, packet })
}

/// The half that passes the launcher unread.
fn go(call: &AdmittedCall) -> Result<OwnedFd, PlanFault> {
    let go = Go { argv: call.argv.clone(), env: call.env.clone(), cwd: call.cwd.clone() };
    let bytes = postcard::to_stdvec(&go).map_err(|source| PlanFault::Encode { source })?;
    if u64::try_from(bytes.len()).map_or(true, |length| length > GO_MAX_BYTES) {
        return Err(PlanFault::TooLarge { got: bytes.len() });
    }
    sealed("go half", &bytes)
}

/// A memory file with these bytes, read from its beginning, that nobody can change.
fn sealed(what: &'static str, bytes: &[u8]) -> Result<OwnedFd, PlanFault> {
    let memory = |source| PlanFault::Memory { what, source };
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // NOEXEC_SEAL: never executable (Linux 6.3); older kernels answer EINVAL.
    let made = match memfd_create("toolcell", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create("toolcell", flags),
        made => made,
    };
    let mut file = File::from(made.map_err(|errno| memory(errno.into()))?);
    file.write_all(bytes).map_err(memory)?;
    file.rewind().map_err(memory)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    fcntl_add_seals(&file, seals).map_err(|errno| memory(errno.into()))?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_sealed_file_reads_from_its_beginning_and_cannot_be_changed() {
        let mut file = File::from(sealed("test", b"abc").unwrap());
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"abc");
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
        assert!(file.set_len(10).is_err());
        assert!(fcntl_add_seals(&file, SealFlags::FUTURE_WRITE).is_err());
    }
}
