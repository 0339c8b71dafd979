//! What an opened ledger holds, against what the signer signed: the chain, every signature, and every column that is said
//! to follow from a payload.
//!
//! Guarantees: of the entries and attempts nothing is believed that a signed payload does not say, with two exceptions
//! that no payload holds: `entry.boot_us`, which nobody decides by, and `attempt.identity`. The latter can only make a
//! request the same as, or another than, the one that was recorded under its name: it decides between a replay and
//! `KEY_PAYLOAD_MISMATCH`, and never lets a known name run again. Answers are not looked at here: whoever serves one
//! makes it from the entry. Does not: mend anything, or notice what is changed while the ledger is open.

use std::num::NonZero;

use rusqlite::{Connection, OptionalExtension as _, Row};
use toolcell_types::{CallState, Sha256};

use crate::chain::{self, Head};
use crate::store::{self, failed, uint};
use crate::{Attempt, Header, LedgerError, Payloads, Record};

/// Entries that are read before they are judged, side by side. At most 8 MB of payloads.
const BATCH: usize = 128;
/// Fewer than this are not worth a thread.
const SHARE_MIN: usize = 16;
/// Most threads.
const THREADS_MAX: usize = 8;

/// Hears how many entries were checked, and of how many.
pub type ProgressFn<'a> = dyn FnMut(u64, u64) + 'a;

/// Checks everything.
///
/// # Errors
/// [`LedgerError::Invalid`] with the first bad index.
pub(crate) fn all(
    connection: &Connection,
    keyid: Sha256,
    payloads: &dyn Payloads,
    progress: &mut ProgressFn<'_>,
) -> Result<Head, LedgerError> {
    indexes(connection)?;
    let head = entries(connection, keyid, payloads, progress)?;
    extra(connection, head)?;
    Ok(head)
}

/// The attempts are looked up by indexes, which have to hold what their table holds; the columns' own rules as well.
fn indexes(connection: &Connection) -> Result<(), LedgerError> {
    let found: String = connection
        .query_row("PRAGMA integrity_check('attempt')", [], |row| row.get(0))
        .map_err(failed("check its indexes"))?;
    if found == "ok" {
        return Ok(());
    }
    Err(LedgerError::Invalid { index: 0, expected: "attempts that are whole".to_owned(), found })
}

fn entries(
    connection: &Connection,
    keyid: Sha256,
    payloads: &dyn Payloads,
    progress: &mut ProgressFn<'_>,
) -> Result<Head, LedgerError> {
    let reading = || failed("read the chain");
    let total = connection.query_row("SELECT count(*) FROM entry", [], |row| uint(row, 0)).map_err(reading())?;
    let mut statement = connection
        .prepare(
            "SELECT idx,prev,leaf,keyid,sig,payload,\
             predicate,event,tenant,key,attempt,state,actor,role,wall_us,boot_id FROM entry ORDER BY idx",
        )
        .map_err(reading())?;
    let mut rows = statement.query([]).map_err(reading())?;
    let mut head = Head::EMPTY;
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        let mut next = head.next;
        while batch.len() < BATCH
            && let Some(row) = rows.next().map_err(reading())?
        {
            batch.push(stored(row).map_err(unreadable(next))?);
            next += 1;
        }
        if batch.is_empty() {
            return Ok(head);
        }
        for (entry, judged) in batch.iter().zip(judge_all(&batch, keyid, payloads)) {
            follows(entry, head)?;
            let (header, record) =
                judged.map_err(|Bad { expected, found }| LedgerError::Invalid { index: head.next, expected, found })?;
            derived(connection, head.next, (&header, &record))?;
            head = head.after(entry.leaf);
        }
        progress(head.next, total.max(head.next));
    }
}

/// One row.
struct Stored {
    index: u64,
    previous: Sha256,
    leaf: Sha256,
    keyid: Sha256,
    signature: [u8; 64],
    payload: Vec<u8>,
    columns: Columns,
}

/// Columns that follow from the payload, as text.
type Columns = [Option<String>; 10];
/// Their names, in the order of the statement above.
const NAMES: [&str; 10] =
    ["predicate", "event", "tenant", "key", "attempt", "state", "actor", "role", "wall_us", "boot_id"];

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let number = |column| row.get::<_, Option<i64>>(column).map(|number| number.map(|number| number.to_string()));
    Ok(Stored {
        index: uint(row, 0)?,
        previous: Sha256(row.get(1)?),
        leaf: Sha256(row.get(2)?),
        keyid: Sha256(row.get(3)?),
        signature: row.get(4)?,
        payload: row.get(5)?,
        columns: [
            row.get(6)?,
            row.get(7)?,
            row.get(8)?,
            row.get(9)?,
            number(10)?,
            row.get(11)?,
            row.get(12)?,
            row.get(13)?,
            number(14)?,
            row.get(15)?,
        ],
    })
}

/// What should stand there.
fn columns(header: &Header, record: &Record) -> Columns {
    let key = record.key();
    let text = |text: &str| Some(text.to_owned());
    [
        text(record.predicate()),
        text(record.event()),
        key.map(|key| key.tenant.clone()),
        key.map(|key| key.key.clone()),
        key.map(|key| key.attempt.to_string()),
        record.state().map(|state| state.as_str().to_owned()),
        text(&header.actor),
        text(&header.role),
        Some(store::int(header.wall_us).to_string()),
        text(&header.boot_id),
    ]
}

/// What is wrong with an entry by itself.
struct Bad {
    expected: String,
    found: String,
}

impl Bad {
    fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into() }
    }
}

type Judged = Result<(Header, Record), Bad>;

/// Signatures and payloads take a tenth of a millisecond each, on as many threads as there are processors.
fn judge_all(batch: &[Stored], keyid: Sha256, payloads: &dyn Payloads) -> Vec<Judged> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    let share = batch.len().div_ceil(threads).max(SHARE_MIN);
    let judge_share = |share: &[Stored]| share.iter().map(|entry| judge(entry, keyid, payloads)).collect::<Vec<_>>();
    if share >= batch.len() {
        return judge_share(batch);
    }
    std::thread::scope(|scope| {
        let shares: Vec<_> =
            batch.chunks(share).map(|share| (share, scope.spawn(move || judge_share(share)))).collect();
        let broken = |share: &[Stored]| {
            share.iter().map(|_entry| Err(Bad::new("a check of this entry", "one that broke down"))).collect()
        };
        shares.into_iter().flat_map(|(share, thread)| thread.join().unwrap_or_else(|_panic| broken(share))).collect()
    })
}

fn judge(entry: &Stored, keyid: Sha256, payloads: &dyn Payloads) -> Judged {
    let computed = chain::leaf(&entry.payload);
    if entry.leaf != computed {
        return Err(Bad::new(format!("leaf {}", entry.leaf), format!("a payload with leaf {computed}")));
    }
    if entry.keyid != keyid {
        return Err(Bad::new(format!("an entry of key {}", keyid.hex()), format!("one of key {}", entry.keyid.hex())));
    }
    if !payloads.verifies(&entry.payload, &entry.signature) {
        return Err(Bad::new("a signature of the signer's over this payload", "another"));
    }
    let (header, record) = payloads
        .record(&entry.payload)
        .map_err(|error| Bad::new("a payload of this version", format!("one that cannot be read: {error}")))?;
    let wanted = columns(&header, &record);
    for (name, (wanted, found)) in NAMES.iter().zip(wanted.iter().zip(&entry.columns)) {
        if wanted != found {
            let show = |value: &Option<String>| format!("{name} {:?}", value.as_deref().unwrap_or("NULL"));
            return Err(Bad::new(format!("{}, as its payload says", show(wanted)), show(found)));
        }
    }
    Ok((header, record))
}

/// Whether the entry stands right after the one before.
fn follows(entry: &Stored, head: Head) -> Result<(), LedgerError> {
    let invalid = |expected: String, found: String| LedgerError::Invalid { index: head.next, expected, found };
    if entry.index != head.next {
        return Err(invalid(format!("entry {}", head.next), format!("entry {}", entry.index)));
    }
    if entry.previous != head.leaf {
        return Err(invalid(format!("previous {}", head.leaf), entry.previous.to_string()));
    }
    Ok(())
}

/// Whether the attempt is what this entry makes of it.
fn derived(connection: &Connection, index: u64, (header, record): (&Header, &Record)) -> Result<(), LedgerError> {
    let Some(key) = record.key() else { return Ok(()) };
    let sql = format!("{} WHERE tenant=?1 AND key=?2 AND attempt=?3", store::ATTEMPT);
    let row = connection
        .prepare_cached(&sql)
        .and_then(|mut found| {
            found.query_row(rusqlite::params![key.tenant, key.key, key.attempt], store::attempt).optional()
        })
        .map_err(unreadable(index))?;
    let invalid = |expected: &str, found: &str| {
        Err(LedgerError::Invalid { index, expected: expected.to_owned(), found: found.to_owned() })
    };
    match (record, row) {
        (Record::Genesis, _) => Ok(()),
        (Record::Intent { .. }, None) => invalid("an attempt for this intent", "none"),
        (Record::Outcome { .. }, None) => invalid("a settled attempt for this outcome", "none"),
        (Record::Intent { .. }, Some(row)) if is_of(&row, index, (header, record)) => Ok(()),
        (Record::Intent { .. }, Some(_)) => invalid("an attempt for this intent", "one that says something else"),
        (Record::Outcome { state, .. }, Some(row)) if row.state == *state && row.outcome_index == Some(index) => Ok(()),
        (Record::Outcome { .. }, Some(_)) => invalid("a settled attempt for this outcome", "one settled otherwise"),
    }
}

/// Whether the row is that of this intent. The identity stands in no payload.
fn is_of(row: &Attempt, index: u64, (header, record): (&Header, &Record)) -> bool {
    let Record::Intent { key, call_id, tool, request, identity: _, submitter } = record else { return false };
    let wanted = Attempt {
        key: key.clone(),
        call_id: call_id.clone(),
        tool: tool.clone(),
        request: *request,
        identity: row.identity,
        state: row.state,
        submitter: submitter.clone(),
        submitted_us: header.wall_us,
        intent_index: index,
        outcome_index: row.outcome_index,
    };
    *row == wanted && (row.state == CallState::Submitting) == row.outcome_index.is_none()
}

/// Rows that no entry accounts for.
fn extra(connection: &Connection, head: Head) -> Result<(), LedgerError> {
    let checks = [
        (
            "an intent for this attempt",
            "SELECT count(*), min(a.intent_idx) FROM attempt a LEFT JOIN entry e ON e.idx=a.intent_idx \
             AND e.event='submit' WHERE e.idx IS NULL",
        ),
        (
            "an outcome for this settled attempt",
            "SELECT count(*), min(a.intent_idx) FROM attempt a LEFT JOIN entry e ON e.idx=a.outcome_idx \
             AND e.event IN ('finish','fail','lose') WHERE a.state<>'submitting' AND e.idx IS NULL",
        ),
        (
            "a settled attempt for every answer",
            "SELECT count(*), min(a.intent_idx) FROM answer s LEFT JOIN attempt a USING(tenant,key,attempt) \
             WHERE a.outcome_idx IS NULL",
        ),
    ];
    for (expected, sql) in checks {
        let (count, index): (i64, Option<i64>) = connection
            .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(failed("compare its tables"))?;
        if count != 0 {
            let index = index.map_or(head.next, |index| u64::try_from(index).unwrap_or(0));
            return Err(LedgerError::Invalid { index, expected: expected.to_owned(), found: "none".to_owned() });
        }
    }
    Ok(())
}

/// A value that does not have its column's form was put there by somebody else.
fn unreadable(index: u64) -> impl Fn(rusqlite::Error) -> LedgerError {
    move |error| {
        let is_odd_value = matches!(
            error,
            rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
        );
        if is_odd_value {
            let expected = "values of their columns' form".to_owned();
            return LedgerError::Invalid { index, expected, found: error.to_string() };
        }
        LedgerError::Database { doing: "read the chain", source: error }
    }
}
