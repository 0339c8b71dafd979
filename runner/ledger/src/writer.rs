//! The one thread that writes: a group is placed, signed, committed, answered, in this order.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

use rusqlite::{Connection, TransactionBehavior};
use toolcell_types::signing::GROUP_MAX;
use toolcell_types::{CallState, LogPosition, PAYLOAD_MAX_BYTES, Sha256};

use crate::chain::{self, Head};
use crate::record::{AnswerFn, DoneFn, SealFn};
use crate::store::{self, failed};
use crate::{Append, Attempt, BoxError, Committed, Header, LedgerError, Payloads, Record, Sign, SignError, location};

/// What the thread owns.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) signer: Box<dyn Sign>,
    pub(crate) head: Head,
    pub(crate) keyid: Sha256,
    pub(crate) directory: PathBuf,
}

/// An append that has its place.
struct Placed {
    previous: Sha256,
    entry: Committed,
    header: Header,
    record: Record,
    answer: Option<AnswerFn>,
    done: DoneFn,
}

/// States of calls as the group so far would leave them, by tenant and key: newest attempt and its state.
type Overlay = HashMap<(String, String), (u32, CallState)>;

impl Writer {
    /// Writes until nobody can append any more. After a failure every append is answered with it.
    pub(crate) fn run(mut self, jobs: &Receiver<Append>, stopped: &OnceLock<Arc<LedgerError>>) {
        while let Ok(first) = jobs.recv() {
            if let Some(cause) = stopped.get() {
                (first.done)(Err(LedgerError::Stopped { cause: Some(Arc::clone(cause)) }));
                continue;
            }
            let mut group = vec![first];
            while group.len() < GROUP_MAX {
                match jobs.try_recv() {
                    Ok(next) => group.push(next),
                    Err(_empty_or_closed) => break,
                }
            }
            let placed = self.place(group);
            if placed.is_empty() {
                continue;
            }
            if let Err((error, waiting)) = self.commit(placed) {
                tracing::error!(%error, "the ledger stops writing");
                let cause = Arc::clone(stopped.get_or_init(|| Arc::new(error)));
                for done in waiting {
                    done(Err(LedgerError::Stopped { cause: Some(Arc::clone(&cause)) }));
                }
            }
        }
    }

    /// Entry 0, before the thread starts.
    pub(crate) fn append_genesis(&mut self, payloads: &mut dyn Payloads) -> Result<(), LedgerError> {
        let position = self.position(self.head);
        let callback = |source| LedgerError::Callback { what: "first entry", source };
        let (header, payload) = payloads.genesis(&position).map_err(callback)?;
        let placed = Placed {
            previous: self.head.leaf,
            entry: self.unsigned(position.index, payload),
            header,
            record: Record::Genesis,
            answer: None,
            done: Box::new(drop),
        };
        self.commit(vec![placed]).map_err(|(error, _waiting)| error)
    }

    /// Gives each append its place. Those that cannot have one hear so, and the others close ranks.
    fn place(&self, group: Vec<Append>) -> Vec<Placed> {
        let mut overlay = Overlay::new();
        let mut head = self.head;
        let mut placed = Vec::with_capacity(group.len());
        for append in group {
            let Append { header, record, payload, answer, done } = append;
            let made = self.admit(&record, &mut overlay).and_then(|()| {
                let callback = |source| LedgerError::Callback { what: "payload", source };
                let bytes = payload(&self.position(head)).map_err(callback)?;
                if bytes.len() > PAYLOAD_MAX_BYTES {
                    let words = format!("{} bytes, at most {PAYLOAD_MAX_BYTES} are possible", bytes.len());
                    return Err(callback(words.into()));
                }
                Ok(bytes)
            });
            match made {
                Ok(payload) => {
                    note(&record, &mut overlay);
                    let previous = head.leaf;
                    let entry = self.unsigned(head.next, payload);
                    head = head.after(entry.leaf);
                    placed.push(Placed { previous, entry, header, record, answer, done });
                }
                Err(error) => done(Err(error)),
            }
        }
        placed
    }

    /// The place of the next entry.
    fn position(&self, head: Head) -> LogPosition {
        LogPosition {
            origin: LogPosition::origin_of(&self.keyid),
            index: head.next,
            previous: head.leaf,
            genesis: head.genesis,
        }
    }

    fn unsigned(&self, index: u64, payload: Vec<u8>) -> Committed {
        let leaf = chain::leaf(&payload);
        Committed { index, leaf, payload, signature: [0; 64], keyid: self.keyid, answer: None }
    }

    /// Whether the call may go from its state to the record's.
    fn admit(&self, record: &Record, overlay: &mut Overlay) -> Result<(), LedgerError> {
        let Some(key) = record.key() else {
            let words = "only the ledger itself writes the first entry";
            return Err(LedgerError::Callback { what: "record", source: words.into() });
        };
        let call = (key.tenant.clone(), key.key.clone());
        let now = match overlay.get(&call) {
            Some(now) => Some(*now),
            None => store::latest(&self.connection, &key.tenant, &key.key)
                .map_err(failed("read an attempt"))?
                .map(|Attempt { key, state, .. }| (key.attempt, state)),
        };
        let state = now.map(|(_, state)| state);
        let conflict = |wanted| Err(LedgerError::Conflict { key: key.clone(), state, wanted });
        match (record, now) {
            (Record::Genesis, _) => conflict("a first entry"),
            (Record::Intent { .. }, None) if key.attempt == 1 => self.room(),
            (Record::Intent { .. }, Some((before, CallState::Failed)))
                if before.checked_add(1) == Some(key.attempt) =>
            {
                self.room()
            }
            (Record::Intent { .. }, _) => conflict("an intent"),
            (Record::Outcome { state: CallState::Submitting, .. }, _) => conflict("an outcome without an end"),
            (Record::Outcome { .. }, Some((live, CallState::Submitting))) if live == key.attempt => Ok(()),
            (Record::Outcome { .. }, _) => conflict("an outcome"),
        }
    }

    /// Only an intent is refused for want of space: an outcome must be written as long as anything can be.
    fn room(&self) -> Result<(), LedgerError> {
        location::check_space(&self.directory, location::FREE_BYTES_MIN)
    }

    /// Signs and commits a group and answers it. On a failure the ledger may lag behind the signer, which the next start
    /// mends; until then nothing may be written.
    fn commit(&mut self, mut group: Vec<Placed>) -> Result<(), (LedgerError, Vec<DoneFn>)> {
        match self.sign(&mut group).and_then(|()| self.store(&mut group)) {
            Ok(()) => {
                for placed in group {
                    self.head = self.head.after(placed.entry.leaf);
                    (placed.done)(Ok(placed.entry));
                }
                Ok(())
            }
            Err(error) => Err((error, group.into_iter().map(|placed| placed.done).collect())),
        }
    }

    fn sign(&mut self, group: &mut [Placed]) -> Result<(), LedgerError> {
        let payloads: Vec<Vec<u8>> = group.iter().map(|placed| placed.entry.payload.clone()).collect();
        let mut sealing: Vec<Option<Result<SealFn, BoxError>>> = Vec::with_capacity(group.len());
        let mut prepare = || {
            sealing.extend(group.iter_mut().map(|placed| Some(placed.answer.take()?(&placed.entry.payload))));
        };
        let signed = self.signer.sign(&payloads, &mut prepare);
        let signatures = signed.map_err(|source| LedgerError::Signer { source })?;
        if signatures.len() != group.len() {
            let detail = format!("{} signatures for {} payloads", signatures.len(), group.len());
            return Err(LedgerError::Signer { source: SignError::Protocol { detail } });
        }
        for ((placed, signature), sealing) in group.iter_mut().zip(signatures).zip(sealing) {
            placed.entry.signature = signature;
            if let Some(prepared) = sealing {
                // The outcome is signed and has to be committed: an answer that fails is made again at the next start.
                match prepared.and_then(|seal| seal(&placed.entry)) {
                    Ok(body) => placed.entry.answer = Some(body),
                    Err(error) => {
                        tracing::error!(index = placed.entry.index, error = &*error, "no answer could be made");
                    }
                }
            }
        }
        Ok(())
    }

    fn store(&mut self, group: &mut [Placed]) -> Result<(), LedgerError> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed("begin a transaction"))?;
        for placed in group.iter() {
            store::write(&transaction, &placed.entry, &placed.previous, (&placed.header, &placed.record))?;
        }
        transaction.commit().map_err(failed("commit"))
    }
}

fn note(record: &Record, overlay: &mut Overlay) {
    if let (Some(key), Some(state)) = (record.key(), record.state()) {
        overlay.insert((key.tenant.clone(), key.key.clone()), (key.attempt, state));
    }
}
