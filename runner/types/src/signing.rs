//! What crosses between daemon and signer, encoded with postcard, each message behind its length (u32, little endian).

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::PAYLOAD_MAX_BYTES;

/// Most payloads of one commit group.
pub const GROUP_MAX: usize = 64;
/// Largest message either side takes, in bytes: a group of the largest payloads, each with its signature (64 bytes) and
/// the lengths of both, and what a status says besides.
pub const MESSAGE_MAX_BYTES: usize = GROUP_MAX * (PAYLOAD_MAX_BYTES + 64 + 16) + 4096;

/// Daemon to signer.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToSigner {
    /// What do you remember?
    Status,
    /// Sign these, consecutive, the first right after what you remember.
    Sign {
        /// Payload bytes, exactly as they will be stored and sent. Of more than [`GROUP_MAX`] only one more is kept as
        /// the message is decoded, so that it can be refused and a million empty ones cost nothing.
        #[serde(deserialize_with = "a_group_and_one_more")]
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

fn a_group_and_one_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
    struct Payloads;

    impl<'de> Visitor<'de> for Payloads {
        type Value = Vec<Vec<u8>>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("payloads")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
            let mut payloads = Vec::new();
            while let Some(payload) = sequence.next_element()? {
                if payloads.len() <= GROUP_MAX {
                    payloads.push(payload);
                }
            }
            Ok(payloads)
        }
    }

    deserializer.deserialize_seq(Payloads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_more_payloads_than_a_group_has_one_more_is_kept() {
        for (sent, kept) in [(0, 0), (GROUP_MAX, GROUP_MAX), (GROUP_MAX + 1, GROUP_MAX + 1), (100_000, GROUP_MAX + 1)] {
            let bytes = postcard::to_stdvec(&ToSigner::Sign { payloads: vec![Vec::new(); sent] }).unwrap();
            let ToSigner::Sign { payloads } = postcard::from_bytes(&bytes).unwrap() else { panic!() };
            assert_eq!(payloads.len(), kept);
        }
    }

    #[test]
    fn the_largest_group_and_its_memory_fit_a_message() {
        let payload = vec![b'x'; PAYLOAD_MAX_BYTES];
        let sign = postcard::to_stdvec(&ToSigner::Sign { payloads: vec![payload.clone(); GROUP_MAX] }).unwrap();
        assert!(sign.len() <= MESSAGE_MAX_BYTES);
        let status = SignerStatus {
            keyid: "ab".repeat(32),
            public_pem: "x".repeat(120),
            next_index: u64::MAX,
            last_leaf: [0; 32],
            last_group: vec![(payload, vec![7; 64]); GROUP_MAX],
        };
        assert!(postcard::to_stdvec(&FromSigner::Status(status)).unwrap().len() <= MESSAGE_MAX_BYTES);
    }
}
