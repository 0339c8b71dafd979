//! Identifiers that are safe to compare, print and hash. None of them ever names a path unhashed.

use serde::{Deserialize, Serialize};

/// Why a text is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must match {pattern}, got {got:?}")]
pub struct BadId {
    /// Which identifier was meant.
    pub what: &'static str,
    /// What it has to look like.
    pub pattern: &'static str,
    /// What came, cut to 64 characters.
    pub got: String,
}

const CALL_ID_PATTERN: &str = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}";

/// The name of a call, chosen by the controller: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallId(String);

impl CallId {
    /// Checks a text and makes it a call id.
    ///
    /// # Errors
    /// [`BadId`] says which form is expected.
    pub fn new(text: &str) -> Result<Self, BadId> {
        let mut bytes = text.bytes();
        let head = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
        let tail = bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if head && tail && text.len() <= 128 {
            return Ok(Self(text.to_owned()));
        }
        Err(BadId { what: "call_id", pattern: CALL_ID_PATTERN, got: text.chars().take(64).collect() })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CallId {
    type Error = BadId;
    fn try_from(text: String) -> Result<Self, BadId> {
        Self::new(&text)
    }
}

impl From<CallId> for String {
    fn from(id: CallId) -> Self {
        id.0
    }
}

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A cell, numbered by the daemon from 1 within one instance's life. Names the cell's cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CellId(pub u64);

impl std::fmt::Display for CellId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A SHA-256 digest. On the wire `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// 64 lower-case hex digits.
    #[must_use]
    pub fn hex(&self) -> String {
        use std::fmt::Write as _;
        self.0.iter().fold(String::with_capacity(64), |mut out, b| {
            // Writing to a String cannot fail.
            if write!(out, "{b:02x}").is_err() {
                out.clear();
            }
            out
        })
    }

    /// Reads 64 hex digits (lower case).
    ///
    /// # Errors
    /// [`BadId`] says which form is expected.
    pub fn from_hex(hex: &str) -> Result<Self, BadId> {
        let bad = || BadId { what: "sha256", pattern: "[0-9a-f]{64}", got: hex.chars().take(64).collect() };
        let digits = hex.as_bytes();
        if digits.len() != 64 {
            return Err(bad());
        }
        let mut out = [0_u8; 32];
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            let nibble = |d: u8| match d {
                b'0'..=b'9' => Some(d - b'0'),
                b'a'..=b'f' => Some(d - b'a' + 10),
                _ => None,
            };
            match (pair.first().copied().and_then(nibble), pair.get(1).copied().and_then(nibble)) {
                (Some(hi), Some(lo)) => *byte = hi * 16 + lo,
                _ => return Err(bad()),
            }
        }
        Ok(Self(out))
    }
}

impl std::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl std::fmt::Display for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl TryFrom<String> for Sha256 {
    type Error = BadId;
    fn try_from(text: String) -> Result<Self, BadId> {
        match text.strip_prefix("sha256:") {
            Some(hex) => Self::from_hex(hex),
            None => Err(BadId { what: "digest", pattern: "sha256:[0-9a-f]{64}", got: text.chars().take(64).collect() }),
        }
    }
}

impl From<Sha256> for String {
    fn from(digest: Sha256) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_follow_the_pattern() {
        for good in ["a", "A-1_b.c", &"x".repeat(128)] {
            assert!(CallId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "a/b", "a b", "ä", "a\n", "..", &"x".repeat(129)] {
            assert!(CallId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn digests_round_trip_and_refuse_other_forms() {
        let digest = Sha256([0xab; 32]);
        assert_eq!(Sha256::try_from(digest.to_string()), Ok(digest));
        for bad in ["", "sha256:", &"ab".repeat(32), &format!("sha256:{}", "AB".repeat(32))] {
            assert!(Sha256::try_from((*bad).to_owned()).is_err(), "{bad}");
        }
    }
}
