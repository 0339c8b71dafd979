//! The words of toolcell: identifiers, units, wire shapes, codes and the plan that crosses from daemon to launcher.
//!
//! Nothing here does I/O, reads a clock or holds state. Shapes that travel as JSON are in `request`, `answer`,
//! `problem`, `tool`, `control`, `verdict`; shapes that travel between our own processes (postcard) are in `plan`
//! and `signing`. `json` reads strict JSON and writes its canonical form.

mod answer;
mod control;
pub mod doctor;
mod fact;
mod ids;
pub mod json;
mod limits;
mod log;
pub mod names;
pub mod plan;
mod problem;
mod request;
pub mod signing;
mod tool;
mod verdict;

pub use answer::{
    AblationFacts, Answer, CallState, CallSummary, CallsPage, Dropped, Effect, Envelope, Health, ImageRef, KeyInfo,
    KeysPage, OutputText, ReceiptItem, ReceiptsPage, RunningCall, Signature, Status, Truncated, Usage,
};
pub use control::{ControlId, ControlReport, ControlSet, ControlState, Verification};
pub use fact::{Fact, Facts};
pub use ids::{BadId, CallId, CellId, Sha256};
pub use limits::{BadLimit, LimitName, Limits, LimitsPatch};
pub use log::LogPosition;
pub use problem::{ErrorCode, Finding, Problem, ToolError};
pub use request::{CallRequest, FileSpec, MountMode, MountSpec, StdinSpec};
pub use tool::{ToolInfo, ToolsPage};
pub use verdict::{LimitHit, Verdict};

/// `payloadType` of every receipt (DSSE v1).
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// `mediaType` of the request that a receipt's subject names.
pub const REQUEST_MEDIA_TYPE: &str = "application/vnd.toolcell.request.v1+json";
/// `predicateType` of the entry that opens a log.
pub const PREDICATE_GENESIS: &str = "urn:toolcell:attestation:executor-event:v1";
/// `predicateType` of an intent.
pub const PREDICATE_INTENT: &str = "urn:toolcell:attestation:tool-execution-intent:v1";
/// `predicateType` of an outcome.
pub const PREDICATE_OUTCOME: &str = "urn:toolcell:attestation:tool-execution:v1";
/// `executor.id` of an instance whose controls cannot be switched off.
pub const EXECUTOR_ID: &str = "urn:toolcell:executor:cell:v1";
/// `executor.id` of an instance in ablation mode.
pub const EXECUTOR_ABLATION_ID: &str = "urn:toolcell:executor:ablation:v1";
/// Largest payload of one ledger entry, in bytes (tlog-tiles prefixes an entry with a 16-bit length).
pub const PAYLOAD_MAX_BYTES: usize = 60_000;
/// Largest request body, in bytes.
pub const BODY_MAX_BYTES: usize = 4 * 1024 * 1024;
