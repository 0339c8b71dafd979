//! The whole answer, from the signed outcome and the kept output. Nothing else goes into it, so that a lost answer is
//! made again byte for byte.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::{Answer, CallState, Dropped, Envelope, OutputText, RunningCall, Sha256, Truncated};

use crate::statement::{self, Recorded, StatementError, Stream};

/// Why no answer can be made.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The payload cannot be read.
    #[error("the payload cannot be read")]
    Payload {
        /// Why.
        source: StatementError,
    },
    /// It states something else.
    #[error("the entry is not {expected}")]
    OtherKind {
        /// What it should have been.
        expected: &'static str,
    },
    /// The envelope is around another payload.
    #[error("the envelope holds another payload")]
    OtherEnvelope,
    /// The bytes are not those that were kept.
    #[error("the kept bytes of {stream} have the digest {got}, the receipt says {expected}")]
    OtherBytes {
        /// Which stream.
        stream: &'static str,
        /// What the receipt says.
        expected: Sha256,
        /// What the bytes have.
        got: Sha256,
    },
    /// A stored answer has no form that its output could be taken from.
    #[error("the stored answer cannot be read")]
    Stored {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It could not be written as JSON.
    #[error("the answer could not be written")]
    Encode {
        /// What the serialiser said.
        source: serde_json::Error,
    },
}

/// An answer that lacks only its receipt.
#[derive(Debug)]
pub struct Unsealed(Answer);

impl Unsealed {
    /// The answer. The envelope must be the one around the payload that this was made of.
    #[must_use]
    pub fn seal(self, receipt: Envelope) -> Answer {
        Answer { receipt, ..self.0 }
    }
}

/// The answer to a call whose outcome is signed.
///
/// # Errors
/// [`AssembleError`] if payload, envelope and kept bytes do not belong together.
pub fn answer(
    payload: &[u8],
    kept_stdout: &[u8],
    kept_stderr: &[u8],
    envelope: Envelope,
) -> Result<Answer, AssembleError> {
    if envelope.payload != STANDARD.encode(payload) {
        return Err(AssembleError::OtherEnvelope);
    }
    Ok(unsealed(payload, kept_stdout, kept_stderr)?.seal(envelope))
}

/// The same while the outcome is still being signed.
///
/// # Errors
/// [`AssembleError`] if payload and kept bytes do not belong together.
pub fn unsealed(payload: &[u8], kept_stdout: &[u8], kept_stderr: &[u8]) -> Result<Unsealed, AssembleError> {
    let recorded = statement::read(payload).map_err(|source| AssembleError::Payload { source })?;
    let Recorded::Outcome { outcome, .. } = recorded else {
        return Err(AssembleError::OtherKind { expected: "an outcome" });
    };
    let (state, retryable, ablation) = (outcome.state(), outcome.is_retryable(), outcome.ablation());
    let definition = outcome.definition;
    Ok(Unsealed(Answer {
        call_id: definition.call_id,
        attempt: definition.attempt,
        tool: definition.tool,
        state,
        status: outcome.status,
        is_error: outcome.is_error,
        effect: outcome.effect,
        retryable,
        revision: outcome.revision,
        data: outcome.data,
        error: outcome.error,
        verdict: outcome.verdict,
        limits_hit: outcome.limits_hit,
        usage: outcome.usage,
        stdout: text("stdout", &outcome.stdout, kept_stdout)?,
        stderr: text("stderr", &outcome.stderr, kept_stderr)?,
        truncated: Truncated { stdout: dropped(&outcome.stdout), stderr: dropped(&outcome.stderr) },
        ablation,
        controls: outcome.controls,
        policy: definition.policy,
        image: definition.image,
        receipt: Envelope { payload: String::new(), payload_type: String::new(), signatures: Vec::new() },
    }))
}

/// The answer to a call whose outcome is signed, with the output that a stored answer holds. Nothing else of that is
/// used, and of the output only what has the digests that the outcome names.
///
/// # Errors
/// [`AssembleError`] if `stored` is no answer, or not that of this outcome.
pub fn again(payload: &[u8], stored: &[u8], envelope: Envelope) -> Result<Answer, AssembleError> {
    let unreadable = |source: Box<dyn std::error::Error + Send + Sync>| AssembleError::Stored { source };
    let stored: Answer = serde_json::from_slice(stored).map_err(|source| unreadable(source.into()))?;
    let bytes = |text: OutputText| match text {
        OutputText::Text(text) => Ok(text.into_bytes()),
        OutputText::Base64 { base64 } => STANDARD.decode(base64).map_err(|source| unreadable(source.into())),
    };
    answer(payload, &bytes(stored.stdout)?, &bytes(stored.stderr)?, envelope)
}

/// The bytes of an answer as they are stored, sent and replayed.
///
/// # Errors
/// [`AssembleError::Encode`]; not expected of any answer.
pub fn encode(answer: &Answer) -> Result<Vec<u8>, AssembleError> {
    serde_json::to_vec(answer).map_err(|source| AssembleError::Encode { source })
}

/// What is known of a call whose intent is signed and whose outcome is not.
///
/// # Errors
/// [`AssembleError`] if the payload is no intent or the envelope holds another.
pub fn running(payload: &[u8], envelope: Envelope) -> Result<RunningCall, AssembleError> {
    if envelope.payload != STANDARD.encode(payload) {
        return Err(AssembleError::OtherEnvelope);
    }
    let recorded = statement::read(payload).map_err(|source| AssembleError::Payload { source })?;
    let Recorded::Intent { intent, .. } = recorded else {
        return Err(AssembleError::OtherKind { expected: "an intent" });
    };
    Ok(RunningCall {
        call_id: intent.definition.call_id,
        attempt: intent.definition.attempt,
        state: CallState::Submitting,
        intent: envelope,
    })
}

fn text(name: &'static str, stream: &Stream, kept: &[u8]) -> Result<OutputText, AssembleError> {
    let got = Sha256(Hasher::digest(kept).into());
    if got != stream.kept {
        return Err(AssembleError::OtherBytes { stream: name, expected: stream.kept, got });
    }
    Ok(match std::str::from_utf8(kept) {
        Ok(text) => OutputText::Text(text.to_owned()),
        Err(_other_bytes) => OutputText::Base64 { base64: STANDARD.encode(kept) },
    })
}

fn dropped(stream: &Stream) -> Option<Dropped> {
    (stream.dropped_bytes > 0).then_some(Dropped { dropped_bytes: stream.dropped_bytes, sha256: stream.sha256 })
}

#[cfg(test)]
mod tests;
