//! The chain of leaf hashes: every payload has its leaf, every entry the leaf of the one before, no index is missing.

use rusqlite::Connection;
use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::Sha256;

use crate::LedgerError;
use crate::store::{failed, uint};

/// What stands before entry 0.
pub(crate) const NOTHING: Sha256 = Sha256([0; 32]);

/// The end of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Index of the next entry.
    pub(crate) next: u64,
    /// Leaf of the last one; [`NOTHING`] if there is none.
    pub(crate) leaf: Sha256,
    /// Leaf of entry 0.
    pub(crate) genesis: Option<Sha256>,
}

impl Head {
    /// Before the first entry.
    pub(crate) const EMPTY: Self = Self { next: 0, leaf: NOTHING, genesis: None };

    /// After one more entry.
    pub(crate) fn after(self, leaf: Sha256) -> Self {
        Self { next: self.next.saturating_add(1), leaf, genesis: Some(self.genesis.unwrap_or(leaf)) }
    }
}

/// SHA-256 over a zero byte and the payload (RFC 6962).
pub(crate) fn leaf(payload: &[u8]) -> Sha256 {
    let mut hasher = Hasher::new();
    hasher.update([0_u8]);
    hasher.update(payload);
    Sha256(hasher.finalize().into())
}

/// Walks over all entries and hashes each payload again.
pub(crate) fn walk(connection: &Connection) -> Result<Head, LedgerError> {
    let reading = || failed("read the chain");
    let mut statement = connection.prepare("SELECT idx,prev,leaf,payload FROM entry ORDER BY idx").map_err(reading())?;
    let mut rows = statement.query([]).map_err(reading())?;
    let mut head = Head::EMPTY;
    while let Some(row) = rows.next().map_err(reading())? {
        let index = uint(row, 0).map_err(reading())?;
        let invalid = |expected: String, found: String| LedgerError::Invalid { index: head.next, expected, found };
        if index != head.next {
            return Err(invalid(format!("entry {}", head.next), format!("entry {index}")));
        }
        let prev = Sha256(row.get(1).map_err(reading())?);
        if prev != head.leaf {
            return Err(invalid(format!("previous {}", head.leaf), prev.to_string()));
        }
        let stored = Sha256(row.get(2).map_err(reading())?);
        let payload = row.get_ref(3).and_then(|value| Ok(value.as_blob()?)).map_err(reading())?;
        let computed = leaf(payload);
        if stored != computed {
            return Err(invalid(format!("leaf {stored}"), format!("a payload with leaf {computed}")));
        }
        head = head.after(stored);
    }
    Ok(head)
}
