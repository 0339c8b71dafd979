//! At the start: what the ledger has to ask, and the calls that an earlier life left without an outcome.
//!
//! Guarantees: every intent without an outcome gets one, `lost`, before the first request is answered; its effect is
//! none only if the tree is known to be gone, because its cgroups were seen empty or the machine was started anew.
//! Does not: look for leftovers itself, the launcher's side does and says so in the configuration.

use std::sync::Arc;

use toolcell_ledger::{Attempt, AttemptKey, Blobs, BoxError, Committed, Header, Payloads, Record};
use toolcell_receipts::statement::{self, Executor, Genesis, Outcome, Recorded, Stream, Submitter};
use toolcell_receipts::{PublicKey, UnixMicros};
use toolcell_types::{LogPosition, Problem, Usage, Verdict};

use crate::answers;
use crate::clock::{Clock, micros};
use crate::daemon::Daemon;
use crate::effect::{Attested, weigh};
use crate::outcome::{self, KeptBytes, empty_tree};
use crate::verdict::Seen;

/// The role of what the daemon writes by itself.
pub(crate) const EXECUTOR_ROLE: &str = "executor";

/// Why an entry cannot be understood again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecoveryError {
    /// It is an entry of another kind.
    #[error("entry {index} is not {expected}")]
    OtherKind {
        /// Its index.
        index: u64,
        /// What it should have been.
        expected: &'static str,
    },
}

/// Reads and makes payloads for the ledger while it opens.
#[derive(Debug)]
pub(crate) struct Restorer {
    /// Who we are.
    pub(crate) executor: Executor,
    /// The signer's key, as the signer says.
    pub(crate) key: PublicKey,
    /// Kept output.
    pub(crate) blobs: Arc<Blobs>,
    /// What time it is.
    pub(crate) clock: Arc<dyn Clock>,
}

impl Payloads for Restorer {
    fn genesis(&mut self, position: &LogPosition) -> Result<(Header, Vec<u8>), BoxError> {
        let made_on = self.clock.wall();
        let genesis = Genesis { keyid: self.key.id(), executor: self.executor.clone(), made_on };
        let header = Header {
            actor: self.executor.instance.clone(),
            role: EXECUTOR_ROLE.to_owned(),
            wall_us: made_on.0,
            boot_us: Some(micros(self.clock.since_boot())),
            boot_id: self.executor.boot_id.clone(),
        };
        Ok((header, genesis.draft()?.finish(position)?))
    }

    fn verifies(&self, payload: &[u8], signature: &[u8; 64]) -> bool {
        self.key.verifies(payload, signature)
    }

    fn record(&self, payload: &[u8]) -> Result<(Header, Record), BoxError> {
        Ok(match statement::read(payload)? {
            Recorded::Genesis { genesis, .. } => (
                header(&genesis.executor, (&genesis.executor.instance, EXECUTOR_ROLE), genesis.made_on),
                Record::Genesis,
            ),
            Recorded::Intent { intent, .. } => {
                let what = intent.definition;
                let actor = (what.submitter.id.as_str(), what.submitter.role.as_str());
                let header = header(&what.executor, actor, what.submitted_on);
                let record = Record::Intent {
                    key: attempt_key(&what.submitter, &what.call_id, what.attempt),
                    call_id: what.call_id,
                    tool: what.tool,
                    request: what.request,
                    identity: None,
                    submitter: what.submitter.id,
                };
                (header, record)
            }
            Recorded::Outcome { outcome, .. } => {
                let state = outcome.state();
                let what = outcome.definition;
                let actor = (what.executor.instance.as_str(), EXECUTOR_ROLE);
                let header = header(&what.executor, actor, outcome.finished_on);
                let key = attempt_key(&what.submitter, &what.call_id, what.attempt);
                (header, Record::Outcome { key, state })
            }
        })
    }

    fn answer(&mut self, committed: &Committed) -> Result<Vec<u8>, BoxError> {
        match statement::read(&committed.payload)? {
            Recorded::Outcome { outcome, .. } => {
                let signed = (committed.payload.as_slice(), &committed.signature, &committed.keyid);
                outcome::answer_again(signed, (&outcome.stdout, &outcome.stderr), &self.blobs)
            }
            Recorded::Genesis { .. } | Recorded::Intent { .. } => {
                Err(RecoveryError::OtherKind { index: committed.index, expected: "an outcome" }.into())
            }
        }
    }
}

/// What every header says, by the payload alone.
pub(crate) fn header(executor: &Executor, (actor, role): (&str, &str), at: UnixMicros) -> Header {
    Header {
        actor: actor.to_owned(),
        role: role.to_owned(),
        wall_us: at.0,
        boot_us: None,
        boot_id: executor.boot_id.clone(),
    }
}

/// The attempt that a payload is about.
pub(crate) fn attempt_key(submitter: &Submitter, call_id: &toolcell_types::CallId, attempt: u32) -> AttemptKey {
    AttemptKey { tenant: submitter.tenant.clone(), key: call_id.to_string(), attempt }
}

/// Settles every intent without an outcome as lost.
///
/// # Errors
/// An outcome could not be written; then no call can be taken either.
pub(crate) async fn settle(daemon: &Daemon, leftovers_gone: bool) -> Result<(), Problem> {
    for attempt in daemon.read(toolcell_ledger::Reader::open_intents).await? {
        let lost = lose(daemon, &attempt, leftovers_gone).await?;
        tracing::warn!(
            call_id = %attempt.call_id, state = lost.state().as_str(), effect = ?lost.effect,
            "a call of an earlier life is settled as lost"
        );
        let _committed = outcome::append(daemon, &lost, KeptBytes::default()).await?;
    }
    Ok(())
}

async fn lose(daemon: &Daemon, attempt: &Attempt, leftovers_gone: bool) -> Result<Outcome, Problem> {
    let (entry, intent) = answers::intent_of(daemon, attempt).await?;
    let definition = intent.definition;
    // No process outlives a start of the machine.
    let tree_gone = leftovers_gone || definition.executor.boot_id != daemon.executor.boot_id;
    let seen = lost(tree_gone);
    let Attested { effect, basis, status, is_error, error } =
        weigh((&seen, !definition.effect_channels.is_empty()), &[], &[]);
    Ok(Outcome {
        definition,
        intent_index: entry.index,
        started_on: None,
        finished_on: daemon.clock.wall(),
        controls: Vec::new(),
        status,
        is_error,
        effect,
        effect_basis: basis,
        tree_gone,
        verdict: seen.verdict,
        limits_hit: Vec::new(),
        usage: Usage::default(),
        revision: empty_tree(),
        data: serde_json::Map::new(),
        error,
        stdout: Stream::empty(),
        stderr: Stream::empty(),
    })
}

fn lost(tree_gone: bool) -> Seen {
    Seen {
        verdict: Verdict::Lost,
        tree_gone,
        message: "the runner died during the call, so that nobody saw its end; its output is lost".to_owned(),
        remedy: "use a new call_id to run it again, if its effect allows it".to_owned(),
        findings: Vec::new(),
        limits_hit: Vec::new(),
        usage: Usage::default(),
        controls: Vec::new(),
        started_on: None,
    }
}
