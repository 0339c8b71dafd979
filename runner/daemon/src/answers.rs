//! What the ledger holds of a call, as it may be told: never a row as it lies there, always what the signer signed.
//!
//! Guarantees: an entry is used only if the signer's signature holds over it and it is about the attempt that named it;
//! an answer is made from its signed outcome and from output with the digests that the outcome names, so that an edited
//! answer is never sent; the memory of answers that are on their way is bounded, for one user and in all. Does not: write.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use toolcell_ledger::{Attempt, AttemptKey, Blobs, BoxError, Entry};
use toolcell_receipts::statement::{self, Outcome, Recorded};
use toolcell_receipts::{assemble, dsse};
use toolcell_types::{ErrorCode, Problem};

use crate::daemon::{Daemon, fault};
use crate::outcome;
use crate::recovery::attempt_key;
use crate::shares::{Share, Short, Who};

/// How long an answer may wait for others to be taken.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);

/// Why an entry is not what an attempt's row makes of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForeignEntry {
    /// The ledger names an entry that it does not hold.
    #[error("entry {index} is not there")]
    Missing {
        /// Its index.
        index: u64,
    },
    /// The signature does not hold.
    #[error("entry {index} is not what the signer signed")]
    Unsigned {
        /// Its index.
        index: u64,
    },
    /// It is about something else.
    #[error("entry {index} is not {expected} of {key}")]
    OtherCall {
        /// Its index.
        index: u64,
        /// What it should have been.
        expected: &'static str,
        /// Of which attempt.
        key: AttemptKey,
    },
}

/// An outcome, and the entry that it stands in.
pub(crate) type SignedOutcome = (Entry, Box<Outcome>);

/// The answer of a call that is over, byte for byte as it was first sent.
///
/// # Errors
/// `LEDGER_INVALID` if it is lost, or if the ledger was changed.
pub(crate) async fn of(daemon: &Daemon, who: Who, attempt: &Attempt) -> Result<Bytes, Problem> {
    let (entry, outcome) = outcome_of(daemon, attempt).await?;
    let streams = (outcome.stdout, outcome.stderr);
    let share = room(daemon, who, expected_bytes(&entry, (&streams.0, &streams.1))).await?;
    let answer = make(daemon, attempt, entry, streams).await?;
    Ok(held(answer.into(), share))
}

/// Once as output, once as text, and what stands around it. Text with many control characters becomes longer.
fn expected_bytes(entry: &Entry, (stdout, stderr): (&statement::Stream, &statement::Stream)) -> u64 {
    let kept = stdout.kept_bytes.saturating_add(stderr.kept_bytes);
    let around = u64::try_from(entry.payload.len()).unwrap_or(u64::MAX).saturating_mul(4);
    kept.saturating_mul(2).saturating_add(around)
}

/// Bytes that are there already, from now on within what there is for answers.
///
/// # Errors
/// `QUEUE_FULL` if there is no room for them; they can be had again.
pub(crate) async fn hold(daemon: &Daemon, who: Who, bytes: Bytes) -> Result<Bytes, Problem> {
    let share = room(daemon, who, u64::try_from(bytes.len()).unwrap_or(u64::MAX)).await?;
    Ok(held(bytes, share))
}

/// Room for an answer, which may have to be waited for.
///
/// # Errors
/// `QUEUE_FULL`.
pub(crate) async fn room(daemon: &Daemon, who: Who, amount: u64) -> Result<Share, Problem> {
    daemon.memory.answers.take_within(who, amount, ROOM_PATIENCE).await.map_err(|short| {
        let (detail, remedy) = match short {
            Short::Own => (
                "answers that you have not taken yet fill the memory that one user has for them",
                "take or close them; the answer of a call that is over is GET /v1/calls/{call_id}",
            ),
            Short::All => (
                "answers that are not taken yet fill the memory that there is for them",
                "ask again later; the answer of a call that is over is GET /v1/calls/{call_id}",
            ),
        };
        Problem::new(ErrorCode::QueueFull, detail, remedy)
    })
}

/// Gives the share back when the last of the bytes is sent, or the connection closed.
pub(crate) fn held(bytes: Bytes, mut share: Share) -> Bytes {
    share.become_amount(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    Bytes::from_owner(Held { bytes, _share: share })
}

struct Held {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn make(
    daemon: &Daemon,
    attempt: &Attempt,
    entry: Entry,
    streams: (statement::Stream, statement::Stream),
) -> Result<Vec<u8>, Problem> {
    let blobs = Arc::clone(&daemon.blobs);
    let made = tokio::task::spawn_blocking(move || {
        let made = from_blobs(&entry, (&streams.0, &streams.1), &blobs);
        (made, entry)
    });
    let (made, entry) = made.await.map_err(|error| fault("the making of an answer did not end", &error))?;
    let error = match made {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    tracing::error!(index = entry.index, error = &*error, "kept output is lost; the stored answer may still hold it");
    let key = attempt.key.clone();
    let stored = daemon.read(move |reader| reader.answer(&key)).await?.ok_or_else(|| lost(attempt))?;
    let made = tokio::task::spawn_blocking(move || {
        let envelope = dsse::envelope(&entry.payload, &entry.signature, &entry.keyid);
        assemble::again(&entry.payload, &stored, envelope).and_then(|answer| assemble::encode(&answer))
    });
    match made.await.map_err(|error| fault("the making of an answer did not end", &error))? {
        Ok(answer) => Ok(answer),
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "a stored answer is not that of its outcome");
            Err(lost(attempt))
        }
    }
}

fn from_blobs(
    entry: &Entry,
    streams: (&statement::Stream, &statement::Stream),
    blobs: &Blobs,
) -> Result<Vec<u8>, BoxError> {
    outcome::answer_again((&entry.payload, &entry.signature, &entry.keyid), streams, blobs)
}

/// The signed outcome of an attempt that is over.
///
/// # Errors
/// `LEDGER_INVALID` if there is none, or if the ledger was changed.
pub(crate) async fn outcome_of(daemon: &Daemon, attempt: &Attempt) -> Result<SignedOutcome, Problem> {
    let index = attempt.outcome_index.ok_or_else(|| lost(attempt))?;
    let (entry, recorded) = signed(daemon, index).await?;
    match recorded {
        Recorded::Outcome { outcome, .. } if key_of(&outcome.definition) == attempt.key => Ok((entry, outcome)),
        Recorded::Outcome { .. } | Recorded::Intent { .. } | Recorded::Genesis { .. } => {
            Err(changed(&ForeignEntry::OtherCall { index, expected: "the outcome", key: attempt.key.clone() }))
        }
    }
}

/// The signed intent of an attempt.
///
/// # Errors
/// `LEDGER_INVALID` if the ledger was changed.
pub(crate) async fn intent_of(daemon: &Daemon, attempt: &Attempt) -> Result<(Entry, Box<statement::Intent>), Problem> {
    let index = attempt.intent_index;
    let (entry, recorded) = signed(daemon, index).await?;
    match recorded {
        Recorded::Intent { intent, .. } if key_of(&intent.definition) == attempt.key => Ok((entry, intent)),
        Recorded::Outcome { .. } | Recorded::Intent { .. } | Recorded::Genesis { .. } => {
            Err(changed(&ForeignEntry::OtherCall { index, expected: "the intent", key: attempt.key.clone() }))
        }
    }
}

fn key_of(definition: &statement::Definition) -> AttemptKey {
    attempt_key(&definition.submitter, &definition.call_id, definition.attempt)
}

async fn signed(daemon: &Daemon, index: u64) -> Result<(Entry, Recorded), Problem> {
    let entry = daemon.read(move |reader| reader.entry(index)).await?;
    let entry = entry.ok_or_else(|| changed(&ForeignEntry::Missing { index }))?;
    if !daemon.log.key.verifies(&entry.payload, &entry.signature) {
        return Err(changed(&ForeignEntry::Unsigned { index }));
    }
    let recorded = statement::read(&entry.payload).map_err(|error| fault("a signed entry cannot be read", &error))?;
    Ok((entry, recorded))
}

fn changed(what: &ForeignEntry) -> Problem {
    fault("the ledger was changed while it was open", what)
}

/// A call whose outcome stands in the ledger and whose answer cannot be made again.
pub(crate) fn lost(attempt: &Attempt) -> Problem {
    let at = attempt.outcome_index.unwrap_or(attempt.intent_index);
    Problem::new(
        ErrorCode::LedgerInvalid,
        format!("the call is over, but its answer is lost, because its kept output is; entry {at} is its receipt"),
        "read the receipt; use a new call_id for new work",
    )
}
