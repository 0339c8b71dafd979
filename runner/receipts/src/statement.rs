//! The three payloads of a log: *genesis* (entry 0), *intent* (signed before anything starts), *outcome* (signed after).
//!
//! Each is a plain struct of what the runner knows; its `draft` checks that it is consistent and will fit, and
//! [`Draft::finish`] writes the bytes once the place in the log is known. [`read`] gives the same structs back from a
//! payload. Guarantees: an outcome whose intent was accepted fits into an entry (texts of errors and limits are cut,
//! observations are bounded); `effect: none` is never stated of a tree that was not seen gone; argument values and
//! output never stand in a payload, only the digest of the request and of the output.

mod draft;
mod error;
mod read;
mod wire;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolcell_types::{
    AblationFacts, CallId, CallState, ControlId, ControlSet, Effect, Facts, ImageRef, LimitHit, Limits, MountSpec,
    Sha256, Status, ToolError, Usage, Verdict,
};

pub use draft::{DEFINITION_MAX_BYTES, Draft};
pub use error::StatementError;
pub use read::{Recorded, look_over, read};

use crate::UnixMicros;

/// Which program made the entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    /// Name of the instance.
    pub instance: String,
    /// `/proc/sys/kernel/random/boot_id` of the machine.
    pub boot_id: String,
    /// Version of toolcell.
    pub toolcell_version: String,
    /// Version of the kernel.
    pub kernel_version: String,
    /// Digest of the program.
    pub build: BuildDigest,
    /// Of an instance in ablation mode, whose receipts are no proof of a sealed cell: which experiment it is for.
    pub experiment: Option<String>,
}

/// Names the program exactly.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BuildDigest {
    /// Of the whole file, 64 lower-case hex digits.
    Sha256(String),
    /// The GNU build id (`NT_GNU_BUILD_ID`), lower-case hex.
    GnuBuildId(String),
}

impl BuildDigest {
    /// Reads `sha256:` and 64 hex digits, or a GNU build id, bare or behind `gnu-build-id:`. None if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(hex) = text.strip_prefix("sha256:") {
            return Sha256::from_hex(hex).ok().map(|digest| Self::Sha256(digest.hex()));
        }
        let hex = text.strip_prefix("gnu-build-id:").unwrap_or(text);
        let digits = hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (digits && (16..=128).contains(&hex.len())).then(|| Self::GnuBuildId(hex.to_owned()))
    }
}

/// Who asked, by credential.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Submitter {
    /// Name of the principal.
    pub id: String,
    /// `caller`, `operator` or `auditor`.
    pub role: String,
    /// The group whose calls it may see.
    pub tenant: String,
    /// What the kernel said about the other end of the socket.
    pub peer: Peer,
}

/// Credentials of the other end of a Unix socket (SO_PEERCRED, unix(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Peer {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Process.
    pub pid: u32,
}

/// What an attempt is: known before it starts, the same in its intent and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// SHA-256 of the RFC 8785 form of the request: the receipt's subject.
    pub request: Sha256,
    /// The controller's name for the call.
    pub call_id: CallId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Name of the tool.
    pub tool: String,
    /// Digest of the tool's definition.
    pub tool_digest: Sha256,
    /// Limits in force.
    pub limits: Limits,
    /// What the caller added.
    pub mounts: Vec<MountSpec>,
    /// The controller's own texts.
    pub labels: BTreeMap<String, String>,
    /// Channels to the outside that the cell has; none for a sealed cell.
    pub effect_channels: Vec<String>,
    /// Digest of the policy in force.
    pub policy: Sha256,
    /// The image.
    pub image: ImageRef,
    /// Who asked.
    pub submitter: Submitter,
    /// Who runs it.
    pub executor: Executor,
    /// Controls that are switched off; none but in ablation mode.
    pub ablated: ControlSet,
    /// UUIDv7 of the attempt.
    pub invocation_id: String,
    /// When the request was admitted.
    pub submitted_on: UnixMicros,
}

/// Entry 0 of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genesis {
    /// SHA-256 of the key's SPKI: the entry's subject.
    pub keyid: Sha256,
    /// Whose log it is.
    pub executor: Executor,
    /// When.
    pub made_on: UnixMicros,
}

/// A control that an attempt is going to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedControl {
    /// Which.
    pub id: ControlId,
    /// Whether the attempt is refused without it.
    pub required: bool,
    /// What is asked for; may be empty.
    pub requested: Facts,
}

/// The promise: signed and durable before anything starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// What is going to run.
    pub definition: Definition,
    /// The controls it is going to have. Reading gives them as JSON only, so that this is empty after [`read`].
    pub planned: Vec<PlannedControl>,
}

/// Why the effect is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectBasis {
    /// No channel to the outside was open, and the tree is gone.
    NoOpenChannel,
    /// A channel was open.
    OpenChannel,
    /// Nobody saw the tree gone.
    TreeNotGone,
}

/// What was read of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// SHA-256 of all bytes, kept or not.
    pub sha256: Sha256,
    /// All bytes.
    pub size_bytes: u64,
    /// SHA-256 of the kept bytes, head then tail: the name of the blob.
    pub kept: Sha256,
    /// Kept bytes.
    pub kept_bytes: u64,
    /// How many of the kept bytes are the head; the gap, if any, follows them.
    pub head_bytes: u64,
    /// Bytes between head and tail that were not kept.
    pub dropped_bytes: u64,
}

impl Stream {
    /// A stream of which nothing came.
    #[must_use]
    pub fn empty() -> Self {
        use sha2::Digest as _;
        let digest = Sha256(sha2::Sha256::digest([]).into());
        Self { sha256: digest, size_bytes: 0, kept: digest, kept_bytes: 0, head_bytes: 0, dropped_bytes: 0 }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The same as in the intent.
    pub definition: Definition,
    /// Index of the intent.
    pub intent_index: u64,
    /// When the tool was let go; none if it never was, or nobody knows.
    pub started_on: Option<UnixMicros>,
    /// When the end was seen.
    pub finished_on: UnixMicros,
    /// Every control, as [`crate::control_items`] gives them; empty only if the tool was not let go or nobody knows.
    pub controls: Vec<Value>,
    /// `ok`, `transient` or `unknown`.
    pub status: Status,
    /// Whether the tool did not succeed.
    pub is_error: bool,
    /// What it did to the outside.
    pub effect: Effect,
    /// How that is known.
    pub effect_basis: EffectBasis,
    /// Whether no process of the attempt is left.
    pub tree_gone: bool,
    /// Why it ended.
    pub verdict: Verdict,
    /// Limits that were reached.
    pub limits_hit: Vec<LimitHit>,
    /// Figures.
    pub usage: Usage,
    /// Digest of the state the tool works on.
    pub revision: Sha256,
    /// The tool's structured result.
    pub data: Map<String, Value>,
    /// Why it did not succeed.
    pub error: Option<ToolError>,
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
}

impl Outcome {
    /// The ledger's state that follows from status and error.
    #[must_use]
    pub fn state(&self) -> CallState {
        match (self.status, self.is_error) {
            (Status::Ok, false) => CallState::Complete,
            (Status::Ok, true) | (Status::Transient, _) => CallState::Failed,
            (Status::Unknown, _) => CallState::Unknown,
        }
    }

    /// What was switched off, if it was in ablation mode.
    #[must_use]
    pub fn ablation(&self) -> Option<AblationFacts> {
        let experiment = self.definition.executor.experiment.clone()?;
        let ablated = self.definition.ablated.iter().collect();
        Some(AblationFacts { experiment, ablated, fell: Some(self.fell().iter().collect()) })
    }

    /// Controls that were not in force because others were switched off.
    #[must_use]
    pub fn fell(&self) -> ControlSet {
        let word = |item: &Value, member: &str| item.get(member).and_then(Value::as_str).map(ToOwned::to_owned);
        let off = self.controls.iter().filter(|item| word(item, "state").as_deref() == Some("ablated"));
        let off = off.filter_map(|item| ControlId::parse(&word(item, "id")?)).collect::<ControlSet>();
        off.without(self.definition.ablated)
    }

    /// Whether the same work may be asked for again: effect none and not complete.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.effect == Effect::None && self.state() != CallState::Complete
    }
}

impl Genesis {
    /// Makes it ready for the log.
    ///
    /// # Errors
    /// [`StatementError::Encode`].
    pub fn draft(&self) -> Result<Draft, StatementError> {
        draft::genesis(self)
    }
}

impl Intent {
    /// Makes it ready for the log.
    ///
    /// # Errors
    /// [`StatementError::TooLarge`] if this or the outcome that follows could be too long: refuse the call.
    pub fn draft(&self) -> Result<Draft, StatementError> {
        draft::intent(self)
    }
}

impl Outcome {
    /// Makes it ready for the log.
    ///
    /// # Errors
    /// [`StatementError::Inconsistent`] if it contradicts itself.
    pub fn draft(&self) -> Result<Draft, StatementError> {
        draft::outcome(self)
    }
}

#[cfg(test)]
mod tests;
