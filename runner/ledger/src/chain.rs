//! The chain of leaf hashes: every payload has its leaf, every entry the leaf of the one before.

use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::Sha256;

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
