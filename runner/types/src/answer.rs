//! What comes back: answers, running calls, listings, keys, receipts.

use serde::{Deserialize, Serialize};

use crate::{CallId, ControlId, LimitHit, Sha256, ToolError, Verdict};

/// Three values and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The call is over and its effect is known.
    Ok,
    /// No program ran and a plain retry may succeed.
    Transient,
    /// The effect is unknown.
    Unknown,
}

/// The ledger's state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The intent is written, the outcome is not.
    Submitting,
    /// Ended well.
    Complete,
    /// Ended badly, without effect.
    Failed,
    /// Its effect is unknown.
    Unknown,
}

impl CallState {
    /// The word in the ledger.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitting => "submitting",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// Reads the ledger's word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Submitting, Self::Complete, Self::Failed, Self::Unknown].into_iter().find(|state| state.as_str() == word)
    }
}

/// What the attempt did to the world outside its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Nothing: no channel was open and the tree is gone.
    None,
    /// What the tool meant to.
    Applied,
    /// Nobody can tell.
    Unknown,
}

/// What was switched off in ablation mode, and for which experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AblationFacts {
    /// Names the experiment.
    pub experiment: String,
    /// As asked for.
    pub ablated: Vec<ControlId>,
    /// What fell with them; absent where nothing was seen yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fell: Option<Vec<ControlId>>,
}

/// Figures of one attempt. What the kernel at hand does not attribute is absent, not zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// From *go* to the end of the main process, CLOCK_MONOTONIC, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_us: Option<u64>,
    /// User time of the tree, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_user_us: Option<u64>,
    /// System time of the tree, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_system_us: Option<u64>,
    /// Time during which the processor quota held the tree back, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_us: Option<u64>,
    /// Highest memory of the tree, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// Most processes and threads at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_peak: Option<u64>,
    /// Processes that the kernel killed for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u64>,
    /// Forks that the process limit refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forks_refused: Option<u64>,
    /// Bytes that came from standard output, kept or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout_bytes: Option<u64>,
    /// Bytes that came from standard error, kept or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_bytes: Option<u64>,
    /// Processes that were still there when the main process ended, and were killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_running_killed: Option<u64>,
}

/// Bytes of a stream: a string when they are UTF-8, else base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OutputText {
    /// UTF-8.
    Text(String),
    /// Anything else, standard base64 with padding.
    Base64 {
        /// The encoded bytes.
        base64: String,
    },
}

/// What of a stream was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// Bytes between head and tail that were counted and hashed but not kept.
    pub dropped_bytes: u64,
    /// Digest of the whole stream.
    pub sha256: Sha256,
}

/// Per stream: null when all of it was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truncated {
    /// Standard output.
    pub stdout: Option<Dropped>,
    /// Standard error.
    pub stderr: Option<Dropped>,
}

/// Which image the cell was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRef {
    /// Its name.
    pub name: String,
    /// Its digest, where it has one.
    pub digest: Option<Sha256>,
    /// Whether the digest pins what ran.
    pub pinned: bool,
}

/// A DSSE v1 envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Standard base64 with padding of the payload.
    pub payload: String,
    /// `application/vnd.in-toto+json`.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// One signature.
    pub signatures: Vec<Signature>,
}

/// One signature of an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Lower-case hex SHA-256 of the key's SPKI; a hint.
    pub keyid: String,
    /// Standard base64 with padding of the Ed25519 signature over the PAE.
    pub sig: String,
}

/// The answer to a call (HTTP 200, also when `is_error`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The call.
    pub call_id: CallId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The tool.
    pub tool: String,
    /// The ledger's state.
    pub state: CallState,
    /// `ok`, `transient` or `unknown`.
    pub status: Status,
    /// Whether the tool did not succeed.
    pub is_error: bool,
    /// What it did to the outside.
    pub effect: Effect,
    /// Effect none and not complete.
    pub retryable: bool,
    /// Digest of the state the tool works on.
    pub revision: Sha256,
    /// The tool's structured result; `{}` when it has none.
    pub data: serde_json::Map<String, serde_json::Value>,
    /// Why it did not succeed.
    pub error: Option<ToolError>,
    /// Why it ended.
    pub verdict: Verdict,
    /// Limits that were reached; and `output_read` for each stream that was not read to its end.
    pub limits_hit: Vec<LimitHit>,
    /// Figures.
    pub usage: Usage,
    /// What was kept of standard output.
    pub stdout: OutputText,
    /// What was kept of standard error.
    pub stderr: OutputText,
    /// What was not kept.
    pub truncated: Truncated,
    /// Only of an instance in ablation mode, whose answers show no sealed cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablation: Option<AblationFacts>,
    /// Every control: asked for, seen, how.
    pub controls: Vec<serde_json::Value>,
    /// Digest of the policy in force.
    pub policy: Sha256,
    /// The image.
    pub image: ImageRef,
    /// The signed outcome.
    pub receipt: Envelope,
}

/// A call that is not over: what 202 and `GET /v1/calls/{id}` return meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunningCall {
    /// The call.
    pub call_id: CallId,
    /// Which attempt.
    pub attempt: u32,
    /// `submitting`.
    pub state: CallState,
    /// The signed intent.
    pub intent: Envelope,
}

/// One line of `GET /v1/calls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSummary {
    /// The call.
    pub call_id: CallId,
    /// Which attempt.
    pub attempt: u32,
    /// The tool.
    pub tool: String,
    /// Its state.
    pub state: CallState,
    /// When the intent was signed, RFC 3339, UTC.
    pub submitted_on: String,
    /// Index of the intent in the ledger.
    pub intent_index: u64,
    /// Index of the outcome, once there is one.
    pub outcome_index: Option<u64>,
}

/// The answer of `GET /v1/calls`, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallsPage {
    /// At most `limit` calls.
    pub calls: Vec<CallSummary>,
}

/// One entry of `GET /v1/receipts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptItem {
    /// Index in the log, from 0.
    pub index: u64,
    /// Leaf hash of the entry.
    pub leaf: Sha256,
    /// The signed entry.
    pub envelope: Envelope,
}

/// The answer of `GET /v1/receipts`: ordered and without gaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptsPage {
    /// Entries after the asked index.
    pub receipts: Vec<ReceiptItem>,
    /// Pass as `after` to go on; null when there was nothing.
    pub last: Option<u64>,
}

/// A public key of this instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyInfo {
    /// Lower-case hex SHA-256 of the SPKI.
    pub keyid: String,
    /// PEM of the SPKI.
    pub pem: String,
    /// `receipt`.
    pub purpose: String,
    /// Whether an operator vouched for it; false in this version.
    pub enrolled: bool,
}

/// The answer of `GET /v1/keys`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysPage {
    /// The instance's keys.
    pub keys: Vec<KeyInfo>,
}

/// The answer of `GET /healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// `ok`, or `ledger_invalid` when only receipts and status are served.
    pub status: String,
    /// Version of the program.
    pub version: String,
    /// Build digest of the program.
    pub build: String,
    /// Name of the instance.
    pub instance: String,
    /// Calls whose outcome is not written yet.
    pub live_calls: u64,
    /// Whether this daemon ends by itself when idle.
    pub ends_when_idle: bool,
    /// Whether controls may be switched off here.
    pub ablation: bool,
    /// Controls that the operator accepted as unavailable.
    pub accept_unavailable: Vec<ControlId>,
    /// Digest of the policy in force.
    pub policy: Sha256,
}
