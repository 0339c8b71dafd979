//! Where an entry stands in an instance's log.

use serde::{Deserialize, Serialize};

use crate::Sha256;

/// The place that the next entry takes; a payload is complete only once it names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// Name of the log: `toolcell/` and the first 16 hex digits of the key id.
    pub origin: String,
    /// Index of the entry, from 0.
    pub index: u64,
    /// Leaf of the entry before; 32 zero bytes for entry 0.
    pub previous: Sha256,
    /// Leaf of entry 0; none for entry 0 itself.
    pub genesis: Option<Sha256>,
}

impl LogPosition {
    /// The origin that belongs to a key id.
    #[must_use]
    pub fn origin_of(keyid: &Sha256) -> String {
        let hex = keyid.hex();
        let (head, _rest) = hex.split_at_checked(16).unwrap_or((&hex, ""));
        format!("toolcell/{head}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_head_of_the_key_id() {
        assert_eq!(LogPosition::origin_of(&Sha256([0xab; 32])), "toolcell/abababababababab");
    }
}
