//! The receipt: what happened is signed and durable before anybody hears of it.

use std::sync::Arc;

use bytes::Bytes;
use sha2::Digest as _;
use toolcell_ledger::{Append, AttemptKey, BlobError, Blobs, Committed, Record};
use toolcell_receipts::assemble::{self, AssembleError};
use toolcell_receipts::statement::{Outcome, Stream};
use toolcell_receipts::{control_items, dsse};
use toolcell_types::{Problem, Sha256};

use crate::daemon::{Daemon, completion, fault};
use crate::effect::Settled;
use crate::output::{Captured, CapturedOutput};
use crate::recovery::EXECUTOR_ROLE;

/// What the digest of an empty tree is taken of: the listing of no files, which has no bytes. (The same as `dirHash1` of
/// golang.org/x/mod/sumdb/dirhash for a directory without files.) A sealed cell keeps nothing, so that this is the
/// revision of every call of this version.
const EMPTY_TREE: &[u8] = b"";

/// The answer's bytes, as they are stored, sent and replayed.
pub(crate) type AnswerBytes = Bytes;

/// Signs the outcome and waits until it is durable, with the kept output before it and the answer beside it.
///
/// # Errors
/// `LEDGER_INVALID`: nothing was written, and the next start settles the call as lost.
pub(crate) async fn sign(daemon: &Daemon, settled: Settled) -> Result<AnswerBytes, Problem> {
    let (judged, attested) = settled.into_parts();
    let (pending, seen, output, finished_on) = judged.into_parts();
    let ([stdout, stderr], kept) = store(&daemon.blobs, output).await?;
    let outcome = Outcome {
        definition: pending.definition,
        intent_index: pending.intent_index,
        started_on: seen.started_on,
        finished_on,
        controls: control_items(&seen.controls),
        status: attested.status,
        is_error: attested.is_error,
        effect: attested.effect,
        effect_basis: attested.basis,
        tree_gone: seen.tree_gone,
        verdict: seen.verdict,
        limits_hit: seen.limits_hit,
        usage: seen.usage,
        revision: empty_tree(),
        data: serde_json::Map::new(),
        error: attested.error,
        stdout,
        stderr,
    };
    let committed = append(daemon, &outcome, kept).await?;
    tracing::info!(
        call_id = %outcome.definition.call_id, tool = outcome.definition.tool, verdict = outcome.verdict.cause(),
        state = outcome.state().as_str(), effect = ?outcome.effect, entry = committed.index, "a call is over"
    );
    // Only now: whoever finds the place free finds the outcome in the ledger.
    drop(pending.place);
    committed
        .answer
        .map(Bytes::from)
        .ok_or_else(|| fault("a signed outcome has no answer", &AssembleError::OtherKind { expected: "an answer" }))
}

/// The revision of a tree without files.
pub(crate) fn empty_tree() -> Sha256 {
    Sha256(sha2::Sha256::digest(EMPTY_TREE).into())
}

/// The bytes that an answer shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptBytes {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Makes the kept output durable. Output that cannot be stored (a full disk) is not kept: its digest and size are still
/// true, and the outcome has to be written.
async fn store(blobs: &Arc<Blobs>, output: Option<CapturedOutput>) -> Result<([Stream; 2], KeptBytes), Problem> {
    let Some(output) = output else { return Ok(([Stream::empty(), Stream::empty()], KeptBytes::default())) };
    let blobs = Arc::clone(blobs);
    if output.stdout.kept.is_empty() && output.stderr.kept.is_empty() {
        // Nothing that could block: the empty content is never written.
        let ((stdout, _), (stderr, _)) = (store_one(&blobs, output.stdout), store_one(&blobs, output.stderr));
        return Ok(([stdout, stderr], KeptBytes::default()));
    }
    let stored = tokio::task::spawn_blocking(move || {
        let (stdout, stdout_kept) = store_one(&blobs, output.stdout);
        let (stderr, stderr_kept) = store_one(&blobs, output.stderr);
        ([stdout, stderr], KeptBytes { stdout: stdout_kept, stderr: stderr_kept })
    });
    stored.await.map_err(|error| fault("the storing of output did not end", &error))
}

fn store_one(blobs: &Blobs, captured: Captured) -> (Stream, Vec<u8>) {
    let Captured { digest, total_bytes, kept, head_bytes, dropped_bytes } = captured;
    let kept_bytes = total_bytes - dropped_bytes;
    match blobs.put(&kept) {
        Ok(name) => {
            let stream =
                Stream { sha256: digest, size_bytes: total_bytes, kept: name, kept_bytes, head_bytes, dropped_bytes };
            (stream, kept)
        }
        Err(error) => {
            let error: &BlobError = &error;
            tracing::error!(error = error as &dyn std::error::Error, "output could not be stored and is not kept");
            let dropped =
                Stream { sha256: digest, size_bytes: total_bytes, dropped_bytes: total_bytes, ..Stream::empty() };
            (dropped, Vec::new())
        }
    }
}

/// Appends an outcome with its answer.
///
/// # Errors
/// As [`sign`].
pub(crate) async fn append(daemon: &Daemon, outcome: &Outcome, kept: KeptBytes) -> Result<Committed, Problem> {
    let draft = outcome.draft().map_err(|error| fault("an outcome could not be written down", &error))?;
    let definition = &outcome.definition;
    let (done, committed) = completion();
    daemon.ledger()?.append(Append {
        header: daemon.header(
            &definition.executor,
            (&definition.executor.instance, EXECUTOR_ROLE),
            outcome.finished_on,
        ),
        record: Record::Outcome {
            key: AttemptKey {
                tenant: definition.submitter.tenant.clone(),
                key: definition.call_id.to_string(),
                attempt: definition.attempt,
            },
            state: outcome.state(),
        },
        payload: Box::new(move |position| draft.finish(position).map_err(Into::into)),
        answer: Some(Box::new(move |payload| {
            let unsealed = assemble::unsealed(payload, &kept.stdout, &kept.stderr)?;
            Ok(Box::new(move |committed| {
                let envelope = dsse::envelope(&committed.payload, &committed.signature, &committed.keyid);
                Ok(assemble::encode(&unsealed.seal(envelope))?)
            }))
        })),
        done,
    });
    committed.await
}

/// The answer of a signed outcome: from the payload and the kept bytes alone, so that it can be made again.
fn answer(
    (payload, signature, keyid): (&[u8], &[u8; 64], &Sha256),
    kept: &KeptBytes,
) -> Result<Vec<u8>, AssembleError> {
    let envelope = dsse::envelope(payload, signature, keyid);
    let answer = assemble::answer(payload, &kept.stdout, &kept.stderr, envelope)?;
    assemble::encode(&answer)
}

/// The answer of a signed outcome whose bytes are in the blobs.
///
/// # Errors
/// The payload cannot be read, or a blob is gone or changed.
pub(crate) fn answer_again(
    signed: (&[u8], &[u8; 64], &Sha256),
    (stdout, stderr): (&Stream, &Stream),
    blobs: &Blobs,
) -> Result<Vec<u8>, toolcell_ledger::BoxError> {
    let kept = KeptBytes {
        stdout: blobs.read(&stdout.kept, stdout.kept_bytes)?,
        stderr: blobs.read(&stderr.kept, stderr.kept_bytes)?,
    };
    Ok(answer(signed, &kept)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_tree_has_the_digest_of_nothing() {
        assert_eq!(empty_tree().to_string(), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn output_that_cannot_be_stored_is_not_kept_and_still_named() {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(directory.path()).unwrap();
        let captured = Captured {
            digest: Sha256([7; 32]),
            total_bytes: 3,
            kept: b"abc".to_vec(),
            head_bytes: 3,
            dropped_bytes: 0,
        };
        let (stream, kept) = store_one(&blobs, captured.clone());
        assert_eq!((stream.kept_bytes, kept.as_slice()), (3, b"abc".as_slice()));
        drop(directory);
        let (stream, kept) = store_one(&blobs, captured);
        assert_eq!((stream.size_bytes, stream.kept_bytes, stream.dropped_bytes), (3, 0, 3));
        assert_eq!((stream.sha256, kept.len()), (Sha256([7; 32]), 0));
    }
}
