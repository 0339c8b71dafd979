//! The SQL: schema, connections, and one function per statement.

use std::path::Path;

use rusqlite::types::Type;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, Transaction, params};
use toolcell_types::{CallId, CallState, Sha256};

use crate::{Attempt, AttemptKey, Committed, Entry, Header, LedgerError, Record};

/// The oldest SQLite without the WAL-reset bug, as `sqlite3_libversion_number()` writes it: 3.51.3.
const LIBRARY_MIN: i32 = 3_051_003;
/// `user_version` of the schema below.
const SCHEMA: i64 = 2;

/// `entry` is the truth; its triggers guard against accidents only. `attempt` and `answer` follow from it.
const TABLES: &str = "
CREATE TABLE meta(k TEXT PRIMARY KEY, v BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE entry(
  idx INTEGER PRIMARY KEY CHECK(idx>=0), predicate TEXT NOT NULL, event TEXT NOT NULL,
  tenant TEXT, key TEXT, attempt INTEGER, state TEXT, actor TEXT NOT NULL, role TEXT NOT NULL,
  wall_us INTEGER NOT NULL, boot_us INTEGER, boot_id TEXT NOT NULL,
  prev BLOB NOT NULL CHECK(length(prev)=32), leaf BLOB NOT NULL UNIQUE CHECK(length(leaf)=32),
  keyid BLOB NOT NULL CHECK(length(keyid)=32), sig BLOB NOT NULL CHECK(length(sig)=64),
  payload BLOB NOT NULL CHECK(length(payload)<=60000)) STRICT;
CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT,'append-only'); END;
CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT,'append-only'); END;
CREATE TABLE attempt(
  tenant TEXT NOT NULL, key TEXT NOT NULL, attempt INTEGER NOT NULL CHECK(attempt>=1),
  call_id TEXT NOT NULL, tool TEXT NOT NULL,
  request BLOB NOT NULL CHECK(length(request)=32), identity BLOB CHECK(length(identity)=32),
  state TEXT NOT NULL CHECK(state IN ('submitting','complete','failed','unknown')),
  submitter TEXT NOT NULL, submitted_us INTEGER NOT NULL,
  intent_idx INTEGER NOT NULL UNIQUE REFERENCES entry(idx), outcome_idx INTEGER UNIQUE REFERENCES entry(idx),
  CHECK((state='submitting')=(outcome_idx IS NULL)),
  PRIMARY KEY(tenant,key,attempt)) STRICT, WITHOUT ROWID;
CREATE INDEX attempt_call ON attempt(call_id);
CREATE INDEX attempt_open ON attempt(intent_idx) WHERE state='submitting';
CREATE TABLE answer(
  tenant TEXT NOT NULL, key TEXT NOT NULL, attempt INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY(tenant,key,attempt), FOREIGN KEY(tenant,key,attempt) REFERENCES attempt(tenant,key,attempt)) STRICT;
";

/// The one connection that writes.
pub(crate) fn connect_writer(path: &Path) -> Result<Connection, LedgerError> {
    let got = rusqlite::version_number();
    if got < LIBRARY_MIN {
        return Err(LedgerError::Library { got, least: LIBRARY_MIN });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed("open"))?;
    if version(&connection)? == 0 {
        // Before anything is written. Payloads and answers are some ten and some forty KiB: as much in fewer pages.
        set(&connection, "page_size", "16384")?;
    }
    set(&connection, "journal_mode", "wal")?;
    set(&connection, "synchronous", "2")?;
    set(&connection, "foreign_keys", "1")?;
    set(&connection, "trusted_schema", "0")?;
    // What a large group needs meanwhile stays in memory: whoever uses this may have no directory for temporary files.
    set(&connection, "temp_store", "2")?;
    set(&connection, "cell_size_check", "1")?;
    keep_plans(&connection)?;
    make_tables(&connection)?;
    Ok(connection)
}

/// A connection that cannot write.
pub(crate) fn connect_reader(path: &Path) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed("open for reading"))?;
    set(&connection, "query_only", "1")?;
    set(&connection, "trusted_schema", "0")?;
    // What a large group needs meanwhile stays in memory: whoever uses this may have no directory for temporary files.
    set(&connection, "temp_store", "2")?;
    set(&connection, "cell_size_check", "1")?;
    keep_plans(&connection)?;
    Ok(connection)
}

/// A statement is planned once, whatever is bound to it later: the library was built to plan anew for each value
/// (SQLITE_ENABLE_STAT4), which here takes longer than the query.
fn keep_plans(connection: &Connection) -> Result<(), LedgerError> {
    let stable = connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true);
    stable.map(drop).map_err(failed("have statements planned once"))
}

/// Sets a pragma and reads it back: SQLite ignores what it does not know or cannot do.
fn set(connection: &Connection, pragma: &'static str, value: &str) -> Result<(), LedgerError> {
    let statement = format!("PRAGMA {pragma}={value}");
    connection.execute_batch(&statement).map_err(failed("set a pragma"))?;
    let got = connection
        .pragma_query_value(None, pragma, |row| row.get_ref(0).map(|v| v.as_i64().map(|n| n.to_string())))
        .and_then(|number| match number {
            Ok(number) => Ok(number),
            Err(_text) => connection.pragma_query_value(None, pragma, |row| row.get::<_, String>(0)),
        })
        .map_err(failed("read a pragma back"))?;
    if got == value {
        return Ok(());
    }
    Err(LedgerError::Invalid { index: 0, expected: statement, found: format!("{pragma}={got}") })
}

/// The schema's version, 0 of a database without tables.
fn version(connection: &Connection) -> Result<i64, LedgerError> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
        .map_err(failed("read the schema's version"))
}

fn make_tables(connection: &Connection) -> Result<(), LedgerError> {
    if version(connection)? == 0 {
        let batch = format!("BEGIN IMMEDIATE;{TABLES}PRAGMA user_version={SCHEMA};COMMIT;");
        connection.execute_batch(&batch).map_err(failed("make its tables"))?;
    }
    let got = version(connection)?;
    if got != SCHEMA {
        let expected = format!("a ledger of schema {SCHEMA}");
        return Err(LedgerError::Invalid { index: 0, expected, found: format!("schema {got}") });
    }
    check_schema(connection)
}

/// Refuses tables, indexes, views and triggers that are not exactly those above: they decide what a statement reads.
fn check_schema(connection: &Connection) -> Result<(), LedgerError> {
    let model = Connection::open_in_memory().map_err(failed("make a model of its tables"))?;
    model.execute_batch(TABLES).map_err(failed("make a model of its tables"))?;
    let (wanted, found) = (schema(&model)?, schema(connection)?);
    let odd = wanted.iter().find(|item| !found.contains(item)).map(|item| (item, "is missing or another"));
    let odd = odd.or_else(|| found.iter().find(|item| !wanted.contains(item)).map(|item| (item, "is there")));
    let Some(((kind, name, ..), what)) = odd else { return Ok(()) };
    let expected = "the tables, indexes and triggers of a ledger and nothing else".to_owned();
    Err(LedgerError::Invalid { index: 0, expected, found: format!("the {kind} {name} {what}") })
}

/// Kind, name, table and text.
type SchemaItem = (String, String, String, Option<String>);

/// Everything in the schema (`sqlite_schema`).
fn schema(connection: &Connection) -> Result<Vec<SchemaItem>, LedgerError> {
    connection
        .prepare("SELECT type,name,tbl_name,sql FROM sqlite_schema ORDER BY name")
        .and_then(|mut all| {
            let items = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
            items.collect()
        })
        .map_err(failed("read its schema"))
}

/// For `map_err`: what was being done.
pub(crate) fn failed(doing: &'static str) -> impl Fn(rusqlite::Error) -> LedgerError {
    move |source| LedgerError::Database { doing, source }
}

/// Everything that one entry changes.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    entry: &Committed,
    previous: &Sha256,
    (header, record): (&Header, &Record),
) -> Result<(), LedgerError> {
    insert_entry(transaction, entry, previous, (header, record)).map_err(failed("append an entry"))?;
    match record {
        Record::Genesis => Ok(()),
        Record::Intent { key, call_id, tool, request, identity, submitter } => {
            let row = Attempt {
                key: key.clone(),
                call_id: call_id.clone(),
                tool: tool.clone(),
                request: *request,
                identity: *identity,
                state: CallState::Submitting,
                submitter: submitter.clone(),
                submitted_us: header.wall_us,
                intent_index: entry.index,
                outcome_index: None,
            };
            insert_attempt(transaction, &row).map_err(failed("note an attempt"))
        }
        Record::Outcome { key, state } => {
            settle(transaction, key, *state, entry.index)?;
            match &entry.answer {
                Some(body) => insert_answer(transaction, key, body).map_err(failed("store an answer")),
                None => Ok(()),
            }
        }
    }
}

fn insert_entry(
    transaction: &Transaction<'_>,
    entry: &Committed,
    previous: &Sha256,
    (header, record): (&Header, &Record),
) -> rusqlite::Result<()> {
    let key = record.key();
    transaction
        .prepare_cached(
            "INSERT INTO entry(idx,predicate,event,tenant,key,attempt,state,actor,role,wall_us,boot_us,boot_id,\
             prev,leaf,keyid,sig,payload) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)",
        )?
        .execute(params![
            int(entry.index),
            record.predicate(),
            record.event(),
            key.map(|key| &key.tenant),
            key.map(|key| &key.key),
            key.map(|key| key.attempt),
            record.state().map(CallState::as_str),
            header.actor,
            header.role,
            int(header.wall_us),
            header.boot_us.map(int),
            header.boot_id,
            previous.0,
            entry.leaf.0,
            entry.keyid.0,
            entry.signature,
            entry.payload,
        ])
        .map(drop)
}

fn insert_attempt(transaction: &Transaction<'_>, row: &Attempt) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO attempt(tenant,key,attempt,call_id,tool,request,identity,state,submitter,submitted_us,\
             intent_idx) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
        )?
        .execute(params![
            row.key.tenant,
            row.key.key,
            row.key.attempt,
            row.call_id.as_str(),
            row.tool,
            row.request.0,
            row.identity.map(|digest| digest.0),
            row.state.as_str(),
            row.submitter,
            int(row.submitted_us),
            int(row.intent_index),
        ])
        .map(drop)
}

fn settle(
    transaction: &Transaction<'_>,
    key: &AttemptKey,
    state: CallState,
    outcome_index: u64,
) -> Result<(), LedgerError> {
    let changed = transaction
        .prepare_cached(
            "UPDATE attempt SET state=?4, outcome_idx=?5 WHERE tenant=?1 AND key=?2 AND attempt=?3 \
             AND state='submitting'",
        )
        .and_then(|mut statement| {
            statement.execute(params![key.tenant, key.key, key.attempt, state.as_str(), int(outcome_index)])
        })
        .map_err(failed("settle an attempt"))?;
    if changed == 1 {
        return Ok(());
    }
    Err(LedgerError::Conflict { key: key.clone(), state: None, wanted: "an outcome" })
}

pub(crate) fn insert_answer(connection: &Connection, key: &AttemptKey, body: &[u8]) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO answer(tenant,key,attempt,body) VALUES(?1,?2,?3,?4)")?
        .execute(params![key.tenant, key.key, key.attempt, body])
        .map(drop)
}

/// The newest attempt of a call.
pub(crate) fn latest(connection: &Connection, tenant: &str, key: &str) -> rusqlite::Result<Option<Attempt>> {
    let sql = format!("{ATTEMPT} WHERE tenant=?1 AND key=?2 ORDER BY attempt DESC LIMIT 1");
    connection.prepare_cached(&sql)?.query_row(params![tenant, key], attempt).optional()
}

/// What [`attempt`] reads.
pub(crate) const ATTEMPT: &str = "SELECT tenant,key,attempt,call_id,tool,request,identity,state,submitter,\
    submitted_us,intent_idx,outcome_idx FROM attempt";

pub(crate) fn attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    let word: String = row.get(7)?;
    let unknown = |column, what: String| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, what.into());
    Ok(Attempt {
        key: AttemptKey { tenant: row.get(0)?, key: row.get(1)?, attempt: row.get(2)? },
        call_id: CallId::new(&row.get::<_, String>(3)?)
            .map_err(|bad| rusqlite::Error::FromSqlConversionFailure(3, Type::Text, Box::new(bad)))?,
        tool: row.get(4)?,
        request: Sha256(row.get(5)?),
        identity: row.get::<_, Option<[u8; 32]>>(6)?.map(Sha256),
        state: CallState::parse(&word).ok_or_else(|| unknown(7, format!("no state: {word:?}")))?,
        submitter: row.get(8)?,
        submitted_us: uint(row, 9)?,
        intent_index: uint(row, 10)?,
        outcome_index: match row.get::<_, Option<i64>>(11)? {
            Some(_) => Some(uint(row, 11)?),
            None => None,
        },
    })
}

/// What [`entry`] reads.
pub(crate) const ENTRY: &str = "SELECT idx,leaf,payload,sig,keyid,tenant FROM entry";

pub(crate) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        index: uint(row, 0)?,
        leaf: Sha256(row.get(1)?),
        payload: row.get(2)?,
        signature: row.get(3)?,
        keyid: Sha256(row.get(4)?),
        tenant: row.get(5)?,
    })
}

/// SQLite's integers are signed; indexes and times never come near the border.
pub(crate) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(crate) fn uint(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let n: i64 = row.get(column)?;
    u64::try_from(n).map_err(|_negative| rusqlite::Error::IntegralValueOutOfRange(column, n))
}
