//! Opening: is this the log that the signer remembers? What the signer signed and the ledger lacks is appended.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use toolcell_types::Sha256;
use toolcell_types::signing::SignerStatus;

use crate::chain::{self, Head};
use crate::store::{self, failed};
use crate::writer::Writer;
use crate::{Append, Committed, LedgerError, Payloads, ProgressFn, Record, Sign, check, location};

/// Most appends that wait; more are answered with [`LedgerError::Busy`].
pub const QUEUE_MAX: usize = 1024;

/// What opening needs.
pub struct Opening<'a> {
    /// The database file; its directory exists.
    pub path: &'a Path,
    /// The signer.
    pub signer: Box<dyn Sign>,
    /// Reads and makes payloads.
    pub payloads: &'a mut dyn Payloads,
    /// Hears how far the check has come: entries checked, and of how many.
    pub progress: &'a mut ProgressFn<'a>,
}

impl std::fmt::Debug for Opening<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The ledger, open for appending. Dropping it waits for what is queued.
#[derive(Debug)]
pub struct Ledger {
    queue: Option<SyncSender<Append>>,
    thread: Option<JoinHandle<()>>,
    stopped: Arc<OnceLock<Arc<LedgerError>>>,
    status: SignerStatus,
    keyid: Sha256,
}

impl Ledger {
    /// Opens the ledger, makes it if there is none, and starts the writer.
    ///
    /// # Errors
    /// [`LedgerError::Invalid`] with the first bad index if it is not what the signer remembers; serve reads only.
    /// Otherwise why the file cannot be used.
    pub fn open(opening: Opening<'_>) -> Result<Self, LedgerError> {
        let Opening { path, mut signer, payloads, progress } = opening;
        let directory = path.parent().map(Path::to_path_buf).unwrap_or_else(|| PathBuf::from("."));
        location::check_file_system(&directory)?;
        location::check_file(path, &directory)?;
        let mut connection = store::connect_writer(path)?;
        let status = signer.status().map_err(|source| LedgerError::Signer { source })?;
        let keyid = key_of(&connection, &status)?;
        let head = check::all(&connection, keyid, &*payloads, progress)?;
        let head = heal(&mut connection, head, (&status, keyid), payloads)?;
        restore_answers(&connection, payloads)?;
        let mut writer = Writer { connection, signer, head, keyid, directory };
        if head == Head::EMPTY {
            writer.append_genesis(payloads)?;
        }
        let status = writer.signer.status().map_err(|source| LedgerError::Signer { source })?;
        let stopped = Arc::new(OnceLock::new());
        let (queue, jobs) = sync_channel(QUEUE_MAX);
        let shared = Arc::clone(&stopped);
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || writer.run(&jobs, &shared))
            .map_err(|source| LedgerError::File { path: path.to_owned(), source })?;
        Ok(Self { queue: Some(queue), thread: Some(thread), stopped, status, keyid })
    }

    /// Queues an append; its `done` hears how it went. Never waits.
    pub fn append(&self, append: Append) {
        let refused = match &self.queue {
            Some(queue) => queue.try_send(append),
            None => Err(TrySendError::Disconnected(append)),
        };
        match refused {
            Ok(()) => {}
            Err(TrySendError::Full(append)) => (append.done)(Err(LedgerError::Busy { most: QUEUE_MAX })),
            Err(TrySendError::Disconnected(append)) => {
                (append.done)(Err(LedgerError::Stopped { cause: self.stopped.get().cloned() }));
            }
        }
    }

    /// Why nothing is written any more, if that is so.
    #[must_use]
    pub fn stopped(&self) -> Option<Arc<LedgerError>> {
        self.stopped.get().cloned()
    }

    /// The key's id.
    #[must_use]
    pub fn keyid(&self) -> Sha256 {
        self.keyid
    }

    /// The key in PEM.
    #[must_use]
    pub fn public_pem(&self) -> &str {
        &self.status.public_pem
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the ledger's writer panicked");
        }
    }
}

/// The signer's key, which must be the one that this log began with.
fn key_of(connection: &Connection, status: &SignerStatus) -> Result<Sha256, LedgerError> {
    let keyid = Sha256::from_hex(&status.keyid)
        .map_err(|bad| LedgerError::Callback { what: "signer's key id", source: Box::new(bad) })?;
    let first: Option<[u8; 32]> = connection
        .query_row("SELECT keyid FROM entry WHERE idx=0", [], |row| row.get(0))
        .optional()
        .map_err(failed("read the first entry"))?;
    match first.map(Sha256) {
        Some(other) if other != keyid => Err(LedgerError::Invalid {
            index: 0,
            expected: format!("the log of key {}", keyid.hex()),
            found: format!("the log of key {}", other.hex()),
        }),
        _ => Ok(keyid),
    }
}

/// Appends what the signer remembers and the ledger lacks, and refuses any other difference.
fn heal(
    connection: &mut Connection,
    head: Head,
    (status, keyid): (&SignerStatus, Sha256),
    payloads: &mut dyn Payloads,
) -> Result<Head, LedgerError> {
    let invalid = |index, expected: String, found: String| LedgerError::Invalid { index, expected, found };
    if head.next > status.next_index {
        let expected = format!("the end of the log, as the signer remembers it ({} entries)", status.next_index);
        return Err(invalid(status.next_index, expected, format!("{} entries", head.next)));
    }
    let group = u64::try_from(status.last_group.len()).unwrap_or(u64::MAX);
    let first = status.next_index.checked_sub(group).ok_or_else(|| {
        invalid(0, format!("a signer's group of at most {} entries", status.next_index), format!("{group} of them"))
    })?;
    if head.next < first {
        let expected = format!("the {} entries that the signer signed", status.next_index);
        return Err(invalid(head.next, expected, format!("{} entries", head.next)));
    }
    let mut healed = head;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed("begin a transaction"))?;
    for (index, (payload, signature)) in (first..).zip(&status.last_group) {
        let leaf = chain::leaf(payload);
        if index < head.next {
            same_leaf(&transaction, index, leaf)?;
            continue;
        }
        let signature: [u8; 64] = signature
            .as_slice()
            .try_into()
            .map_err(|bad| LedgerError::Callback { what: "signer's remembered signature", source: Box::new(bad) })?;
        let callback = |source| LedgerError::Callback { what: "meaning of a signed entry", source };
        let (header, record) = payloads.record(payload).map_err(callback)?;
        let mut entry = Committed { index, leaf, payload: payload.clone(), signature, keyid, answer: None };
        if matches!(record, Record::Outcome { .. }) {
            entry.answer = Some(payloads.answer(&entry)).transpose().unwrap_or_else(|error| {
                tracing::error!(index, error = &*error, "the answer of a signed outcome could not be made");
                None
            });
        }
        store::write(&transaction, &entry, &healed.leaf, (&header, &record))?;
        healed = healed.after(leaf);
    }
    if healed.leaf.0 != status.last_leaf {
        let expected = format!("leaf {}, as the signer remembers it", Sha256(status.last_leaf));
        return Err(invalid(healed.next.saturating_sub(1), expected, healed.leaf.to_string()));
    }
    transaction.commit().map_err(failed("commit what the signer remembers"))?;
    if healed != head {
        tracing::warn!(from = head.next, to = healed.next, "appended entries that were signed but not committed");
    }
    Ok(healed)
}

fn same_leaf(connection: &Connection, index: u64, signed: Sha256) -> Result<(), LedgerError> {
    let stored: [u8; 32] = connection
        .query_row("SELECT leaf FROM entry WHERE idx=?1", [store::int(index)], |row| row.get(0))
        .map_err(failed("read a leaf"))?;
    if stored == signed.0 {
        return Ok(());
    }
    let expected = format!("leaf {signed}, as the signer remembers it");
    Err(LedgerError::Invalid { index, expected, found: Sha256(stored).to_string() })
}

/// Makes missing answers again. One that cannot be made concerns its call only.
fn restore_answers(connection: &Connection, payloads: &mut dyn Payloads) -> Result<(), LedgerError> {
    let mut statement = connection
        .prepare(
            "SELECT e.idx,e.leaf,e.payload,e.sig,e.keyid,e.tenant,e.key,e.attempt FROM attempt a \
             JOIN entry e ON e.idx=a.outcome_idx LEFT JOIN answer s USING(tenant,key,attempt) \
             WHERE s.body IS NULL ORDER BY e.idx",
        )
        .map_err(failed("look for missing answers"))?;
    let missing: Vec<(Committed, crate::AttemptKey)> = statement
        .query_map(params![], |row| {
            let entry = store::entry(row)?;
            let key = crate::AttemptKey { tenant: row.get(5)?, key: row.get(6)?, attempt: row.get(7)? };
            let committed = Committed {
                index: entry.index,
                leaf: entry.leaf,
                payload: entry.payload,
                signature: entry.signature,
                keyid: entry.keyid,
                answer: None,
            };
            Ok((committed, key))
        })
        .and_then(Iterator::collect)
        .map_err(failed("read outcomes without an answer"))?;
    for (committed, key) in missing {
        match payloads.answer(&committed) {
            Ok(body) => store::insert_answer(connection, &key, &body).map_err(failed("store an answer"))?,
            Err(error) => {
                tracing::error!(index = committed.index, error = &*error, "a missing answer could not be made again");
            }
        }
    }
    Ok(())
}
