//! The plan: what the launcher reads (*prepare*) and what only the cell's init reads (*go*), the latter and standard
//! input in sealed memory files whose descriptors travel with the packet.
//!
//! Guarantees: a memory file cannot be changed any more once it leaves here (fcntl(2), F_ADD_SEALS); a plan that cannot
//! be made is carried on as one, so that it gets an intent and an outcome that say so. Does not: send it.

use std::os::fd::OwnedFd;

use toolcell_images::Image;
use toolcell_policy::AdmittedCall;
use toolcell_receipts::UnixMicros;
use toolcell_receipts::statement::Definition;
use toolcell_types::plan::{CallerIds, GO_MAX_BYTES, Go, PlanMount, Prepare, ToLauncher};
use toolcell_types::{CellId, ControlId, ControlSet, ErrorCode, Limits, Problem};

use crate::calls::Place;
use crate::daemon::Daemon;
use crate::gate::Admitted;
use crate::identify::{IdentifiedCall, Peer};
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
    /// Host paths of the mounts, in the plan's order.
    pub(crate) hosts: Vec<String>,
}

/// What of a call is still needed once its plan is made: arguments and standard input are not.
#[derive(Debug)]
pub(crate) struct Prospect {
    /// What is going to run, as the intent will say.
    pub(crate) definition: Definition,
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
    asked: IdentifiedCall,
    prospect: Prospect,
    launch: Result<Launch, PlanFault>,
}

impl Planned {
    /// Apart, to be carried on.
    pub(crate) fn into_parts(self) -> (IdentifiedCall, Prospect, Result<Launch, PlanFault>) {
        (self.asked, self.prospect, self.launch)
    }
}

/// Makes the plan.
///
/// # Errors
/// `PERMISSION_DENIED` if the policy names an image that is not there.
pub(crate) fn make(daemon: &Daemon, admitted: Admitted) -> Result<Planned, Problem> {
    let definition = define(daemon, &admitted)?;
    let (call, asked, place) = admitted.into_parts();
    let launch = launch(daemon, &call, (&definition, asked.identity().peer()));
    let prospect = Prospect {
        is_deadline_shorter: definition.limits.wall_ms < call.limits.wall_ms,
        definition,
        complete_exit_codes: call.complete_exit_codes,
        transient_exit_codes: call.transient_exit_codes,
        place,
    };
    Ok(Planned { asked, prospect, launch })
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
        ablated: definition.ablated,
    };
    let message = ToLauncher::Arm { cell, has_stdin: call.stdin.is_some(), prepare };
    let packet = Packet::new(&message, descriptors).map_err(|source| PlanFault::Packet { source })?;
    let hosts = call.mounts.iter().map(|mount| mount.host.clone()).collect();
    Ok(Launch { cell, packet, hosts })
}

fn define(daemon: &Daemon, admitted: &Admitted) -> Result<Definition, Problem> {
    let (call, asked) = (admitted.call(), admitted.asked());
    let request = asked.decoded();
    // The policy in force was compared with the images that there are, when the daemon started.
    let image = toolcell_images::find(&call.image).ok_or_else(|| {
        let detail = format!("there is no image {:?}", call.image);
        Problem::new(ErrorCode::PermissionDenied, detail, "name an image that is there")
    })?;
    let submitted_on = daemon.clock.wall();
    // Decoding took none but those of a control, and none at all but in ablation mode.
    let ablated = request.request().ablated();
    Ok(Definition {
        request: request.digest(),
        call_id: request.request().call_id.clone(),
        attempt: crate::intent::FIRST_ATTEMPT,
        tool: call.tool.clone(),
        tool_digest: call.tool_digest,
        limits: within_deadline(call.limits, request.left_ms(daemon.clock.monotonic())),
        mounts: request.request().mounts.clone(),
        labels: request.request().labels.clone(),
        effect_channels: channels(&ablated),
        policy: daemon.policy.digest(),
        image: image.reference,
        submitter: asked.identity().submitter(),
        executor: daemon.executor.clone(),
        ablated,
        invocation_id: invocation_id(submitted_on),
        submitted_on,
    })
}

/// A sealed cell has no channel to the outside. Nobody knows where one leads that lacks a control, but where that only
/// limits how much it uses.
fn channels(ablated: &ControlSet) -> Vec<String> {
    const LIMITS: [ControlId; 9] = [
        ControlId::EnvironmentAllowlist,
        ControlId::CgroupMemory,
        ControlId::CgroupCpu,
        ControlId::CgroupPids,
        ControlId::Rlimits,
        ControlId::TmpQuota,
        ControlId::OutputCap,
        ControlId::WallClock,
        ControlId::CpuClock,
    ];
    if ablated.iter().all(|id| LIMITS.contains(&id)) { Vec::new() } else { vec!["ablation".to_owned()] }
}

/// A UUIDv7 of that time (RFC 9562): sorts by it, and 74 random bits keep it from being met again.
fn invocation_id(at: UnixMicros) -> String {
    let nanos = u32::try_from(at.0 % 1_000_000).unwrap_or(0) * 1000;
    let timestamp = uuid::Timestamp::from_unix(uuid::NoContext, at.0 / 1_000_000, nanos);
    uuid::Uuid::new_v7(timestamp).to_string()
}

/// The wall clock is the shorter of the limit and of what is left of `deadline_ms`.
fn within_deadline(limits: Limits, left_ms: Option<u64>) -> Limits {
    // A deadline that ran out just now leaves the shortest clock there is.
    let wall_ms = left_ms.map_or(limits.wall_ms, |left| left.clamp(1, limits.wall_ms));
    Limits { wall_ms, ..limits }
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
    let memory = toolcell_sys::sealed_memory("toolcell", bytes);
    memory.map(OwnedFd::from).map_err(|source| PlanFault::Memory { what, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_s_name_begins_with_its_time_and_is_new_each_time() {
        let at = UnixMicros(1_796_000_000_123_456);
        let (one, other) = (invocation_id(at), invocation_id(at));
        assert!(one.starts_with("01a229f1-287b-7"), "{one}");
        assert_eq!((one.len(), &one[14..15]), (36, "7"));
        assert_ne!(one, other);
    }

    #[test]
    fn a_deadline_shortens_the_wall_clock_and_never_lengthens_it() {
        let limits = Limits { wall_ms: 1000, ..Limits::default() };
        let wall = |left| within_deadline(limits, left).wall_ms;
        assert_eq!((wall(None), wall(Some(400)), wall(Some(5000)), wall(Some(0))), (1000, 400, 1000, 1));
    }
}
