//! What crosses between daemon and signer, encoded with postcard, each message behind its length (u32, little endian).

use serde::{Deserialize, Serialize};

/// Most payloads of one commit group.
pub const GROUP_MAX: usize = 64;
/// Largest message either side takes, in bytes.
pub const MESSAGE_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Daemon to signer.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToSigner {
    /// What do you remember?
    Status,
    /// Sign these, consecutive, the first right after what you remember.
    Sign {
        /// Payload bytes, exactly as they will be stored and sent.
        payloads: Vec<Vec<u8>>,
    },
}

/// Signer to daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromSigner {
    /// What the signer remembers.
    Status(SignerStatus),
    /// One signature (64 bytes) per payload; remembered durably before this was sent.
    Signed {
        /// In the order of the payloads.
        signatures: Vec<Vec<u8>>,
    },
    /// Nothing was signed and nothing is remembered of it.
    Refused {
        /// Which of the payloads, from 0.
        at: u32,
        /// Why.
        detail: String,
    },
}

/// What the signer remembers, durably.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignerStatus {
    /// Hex SHA-256 of the SPKI.
    pub keyid: String,
    /// SPKI in PEM.
    pub public_pem: String,
    /// Entries signed so far; the next index.
    pub next_index: u64,
    /// Leaf of the last entry; 32 zero bytes before the first.
    pub last_leaf: [u8; 32],
    /// The last commit group: payloads and their signatures, in order.
    pub last_group: Vec<(Vec<u8>, Vec<u8>)>,
}
