//! What goes into the ledger and what comes out of it.

use toolcell_types::{CallId, CallState, LogPosition, PREDICATE_GENESIS, PREDICATE_INTENT, PREDICATE_OUTCOME, Sha256};

use crate::{BoxError, LedgerError};

/// Makes the payload once its place in the log is known. Runs on the writer's thread: no I/O, no waiting.
pub type PayloadFn = Box<dyn FnOnce(&LogPosition) -> Result<Vec<u8>, BoxError> + Send>;
/// Prepares the answer of a call from the payload of its outcome, while that is being signed. Runs on the writer's thread:
/// no waiting.
pub type AnswerFn = Box<dyn FnOnce(&[u8]) -> Result<SealFn, BoxError> + Send>;
/// Makes a prepared answer whole with the signed outcome. Runs on the writer's thread: no waiting.
pub type SealFn = Box<dyn FnOnce(&Committed) -> Result<Vec<u8>, BoxError> + Send>;
/// Hears how an append went. Runs on the writer's thread: wake somebody, nothing else.
pub type DoneFn = Box<dyn FnOnce(Result<Committed, LedgerError>) + Send>;

/// Something to append.
pub struct Append {
    /// Who wrote it, and when.
    pub header: Header,
    /// What it means for a call.
    pub record: Record,
    /// Makes the payload.
    pub payload: PayloadFn,
    /// Makes the answer; only with an outcome.
    pub answer: Option<AnswerFn>,
    /// Hears how it went, exactly once unless the writer died.
    pub done: DoneFn,
}

impl std::fmt::Debug for Append {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Append").field("header", &self.header).field("record", &self.record).finish_non_exhaustive()
    }
}

/// Who wrote an entry, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The principal's name, or the executor's.
    pub actor: String,
    /// `caller`, `operator`, `auditor` or `executor`.
    pub role: String,
    /// CLOCK_REALTIME, microseconds since 1970; advisory.
    pub wall_us: u64,
    /// CLOCK_BOOTTIME, microseconds; absent in an entry that was restored from the signer's memory.
    pub boot_us: Option<u64>,
    /// The machine's boot id.
    pub boot_id: String,
}

/// Names one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttemptKey {
    /// The group whose call it is.
    pub tenant: String,
    /// The idempotency key within the tenant.
    pub key: String,
    /// Which attempt, from 1.
    pub attempt: u32,
}

impl std::fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} attempt {} of tenant {:?}", self.key, self.attempt, self.tenant)
    }
}

/// What an entry means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Entry 0; only the ledger itself appends it.
    Genesis,
    /// An attempt is going to start.
    Intent {
        /// Which.
        key: AttemptKey,
        /// The controller's name for the call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// Digest of the canonical request.
        request: Sha256,
        /// Digest of what makes two requests the same; absent in a row that was restored from the signer's memory. It
        /// does not stand in the payload, since it lacks the salt.
        identity: Option<Sha256>,
        /// The principal's name.
        submitter: String,
    },
    /// An attempt is over.
    Outcome {
        /// Which.
        key: AttemptKey,
        /// How.
        state: CallState,
    },
}

impl Record {
    /// The attempt that it is about.
    #[must_use]
    pub fn key(&self) -> Option<&AttemptKey> {
        match self {
            Self::Genesis => None,
            Self::Intent { key, .. } | Self::Outcome { key, .. } => Some(key),
        }
    }

    pub(crate) fn predicate(&self) -> &'static str {
        match self {
            Self::Genesis => PREDICATE_GENESIS,
            Self::Intent { .. } => PREDICATE_INTENT,
            Self::Outcome { .. } => PREDICATE_OUTCOME,
        }
    }

    pub(crate) fn event(&self) -> &'static str {
        match self {
            Self::Genesis => "genesis",
            Self::Intent { .. } => "submit",
            Self::Outcome { state: CallState::Complete, .. } => "finish",
            Self::Outcome { state: CallState::Failed, .. } => "fail",
            Self::Outcome { state: CallState::Unknown | CallState::Submitting, .. } => "lose",
        }
    }

    pub(crate) fn state(&self) -> Option<CallState> {
        match self {
            Self::Genesis => None,
            Self::Intent { .. } => Some(CallState::Submitting),
            Self::Outcome { state, .. } => Some(*state),
        }
    }
}

/// A durable entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Index in the log, from 0.
    pub index: u64,
    /// Its leaf hash.
    pub leaf: Sha256,
    /// The payload bytes.
    pub payload: Vec<u8>,
    /// The signer's Ed25519 signature over the DSSE pre-authentication encoding of the payload.
    pub signature: [u8; 64],
    /// SHA-256 of the signer's SPKI.
    pub keyid: Sha256,
    /// The stored answer; only of an outcome, and only after the answer was made.
    pub answer: Option<Vec<u8>>,
}

/// An entry as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Index in the log, from 0.
    pub index: u64,
    /// Its leaf hash.
    pub leaf: Sha256,
    /// The payload bytes.
    pub payload: Vec<u8>,
    /// The signature.
    pub signature: [u8; 64],
    /// The key's id.
    pub keyid: Sha256,
    /// Whose call it is about, if any: who else may see the entry is for the caller of this crate to decide.
    pub tenant: Option<String>,
}

/// The ledger's view of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Which.
    pub key: AttemptKey,
    /// The controller's name for the call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// Digest of the canonical request.
    pub request: Sha256,
    /// Digest of what makes two requests the same; if absent, only an equal `request` is the same.
    pub identity: Option<Sha256>,
    /// Its state.
    pub state: CallState,
    /// The principal's name.
    pub submitter: String,
    /// When it was submitted, microseconds since 1970.
    pub submitted_us: u64,
    /// Index of the intent.
    pub intent_index: u64,
    /// Index of the outcome, once there is one.
    pub outcome_index: Option<u64>,
}

impl Attempt {
    /// Whether a request with these digests is the request of this attempt.
    #[must_use]
    pub fn is_same_request(&self, request: &Sha256, identity: &Sha256) -> bool {
        self.request == *request || self.identity.as_ref() == Some(identity)
    }
}

/// What the ledger has to ask when it opens, since it does not read payloads itself.
///
/// Reading and verifying is done on several threads at once.
pub trait Payloads: Sync {
    /// The payload of entry 0.
    ///
    /// # Errors
    /// Whatever kept it from being made; the ledger is then not opened.
    fn genesis(&mut self, position: &LogPosition) -> Result<(Header, Vec<u8>), BoxError>;

    /// Whether this is the signer's signature over the payload.
    fn verifies(&self, payload: &[u8], signature: &[u8; 64]) -> bool;

    /// What an entry means, by its payload alone. The header's `boot_us` and an intent's `identity` are absent.
    ///
    /// # Errors
    /// Whatever kept it from being read; the ledger is then not opened.
    fn record(&self, payload: &[u8]) -> Result<(Header, Record), BoxError>;

    /// The answer that belongs to an outcome, made again.
    ///
    /// # Errors
    /// Whatever kept it from being made, such as a lost blob; that call is then left without a stored answer.
    fn answer(&mut self, outcome: &Committed) -> Result<Vec<u8>, BoxError>;
}
