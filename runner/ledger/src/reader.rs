//! Reads, on a connection that cannot write. Works also on a ledger that must not be written to.

use std::path::Path;
use std::sync::{Mutex, TryLockError};

use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};
use toolcell_types::CallId;

use crate::store::{self, failed, int};
use crate::{Attempt, AttemptKey, Entry, LedgerError};

/// Reads the ledger. May be shared between threads, which then take turns; do not call it where waiting is not allowed.
#[derive(Debug)]
pub struct Reader {
    connection: Mutex<Connection>,
}

impl Reader {
    /// Opens a ledger that was opened for writing before.
    ///
    /// # Errors
    /// [`LedgerError::Database`].
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        Ok(Self { connection: Mutex::new(store::connect_reader(path)?) })
    }

    /// The newest attempt of a call.
    ///
    /// # Errors
    /// [`LedgerError::Database`]; refuse the request that needed it.
    pub fn latest(&self, tenant: &str, key: &str) -> Result<Option<Attempt>, LedgerError> {
        self.with("read an attempt", |connection| store::latest(connection, tenant, key))
    }

    /// The same for who may not wait: one look at an index, or none if somebody else reads just now.
    ///
    /// # Errors
    /// [`LedgerError::Database`]; refuse the request that needed it.
    pub fn latest_at_once(&self, tenant: &str, key: &str) -> Option<Result<Option<Attempt>, LedgerError>> {
        let connection = match self.connection.try_lock() {
            Ok(connection) => connection,
            // As in `with`.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(store::latest(&connection, tenant, key).map_err(failed("read an attempt")))
    }

    /// Attempts of that call id in whatever tenant, newest first.
    ///
    /// # Errors
    /// [`LedgerError::Database`].
    pub fn named(&self, call_id: &CallId, limit: u32) -> Result<Vec<Attempt>, LedgerError> {
        self.attempts("WHERE call_id=?1 ORDER BY intent_idx DESC LIMIT ?2", params![call_id.as_str(), limit])
    }

    /// The newest attempts, of one tenant or of all.
    ///
    /// # Errors
    /// [`LedgerError::Database`].
    pub fn newest(&self, tenant: Option<&str>, limit: u32) -> Result<Vec<Attempt>, LedgerError> {
        let tail = "WHERE ?1 IS NULL OR tenant=?1 ORDER BY intent_idx DESC LIMIT ?2";
        self.attempts(tail, params![tenant, limit])
    }

    /// Attempts without an outcome, oldest first.
    ///
    /// # Errors
    /// [`LedgerError::Database`].
    pub fn open_intents(&self) -> Result<Vec<Attempt>, LedgerError> {
        self.attempts("WHERE state='submitting' ORDER BY intent_idx", [])
    }

    /// Entries after an index (from the beginning if none), in order and without gaps.
    ///
    /// # Errors
    /// [`LedgerError::Database`].
    pub fn entries_after(&self, after: Option<u64>, limit: u32) -> Result<Vec<Entry>, LedgerError> {
        let sql = format!("{} WHERE idx>?1 ORDER BY idx LIMIT ?2", store::ENTRY);
        let after = after.map_or(-1, int);
        self.with("read entries", |connection| rows(connection, &sql, params![after, limit], store::entry))
    }

    /// One entry.
    ///
    /// # Errors
    /// [`LedgerError::Database`].
    pub fn entry(&self, index: u64) -> Result<Option<Entry>, LedgerError> {
        let sql = format!("{} WHERE idx=?1", store::ENTRY);
        self.with("read an entry", |connection| {
            connection.prepare_cached(&sql)?.query_row([int(index)], store::entry).optional()
        })
    }

    /// The stored answer of an attempt, byte for byte.
    ///
    /// # Errors
    /// [`LedgerError::Database`].
    pub fn answer(&self, key: &AttemptKey) -> Result<Option<Vec<u8>>, LedgerError> {
        self.with("read an answer", |connection| {
            connection
                .prepare_cached("SELECT body FROM answer WHERE tenant=?1 AND key=?2 AND attempt=?3")?
                .query_row(params![key.tenant, key.key, key.attempt], |row| row.get(0))
                .optional()
        })
    }

    fn attempts(&self, tail: &str, values: impl Params) -> Result<Vec<Attempt>, LedgerError> {
        let sql = format!("{} {tail}", store::ATTEMPT);
        self.with("read attempts", |connection| rows(connection, &sql, values, store::attempt))
    }

    fn with<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        // A read that panicked has changed nothing: the connection cannot write.
        let connection = self.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        read(&connection).map_err(failed(doing))
    }
}

fn rows<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(values, read)?.collect()
}
