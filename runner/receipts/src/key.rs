//! The public half of a receipt key: Ed25519, read from and written as SPKI in PEM, named by the digest of its SPKI.

use ed25519_dalek::pkcs8::DecodePublicKey as _;
use ed25519_dalek::pkcs8::EncodePublicKey as _;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::Sha256;

use crate::dsse;

/// What stands before the 32 bytes of an Ed25519 key in its SPKI (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Why a text is no public key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// No UTF-8.
    #[error("the key file is not text")]
    NotText {
        /// What the decoder said.
        source: std::str::Utf8Error,
    },
    /// No Ed25519 key in PEM.
    #[error("the key is not an Ed25519 public key in PEM (BEGIN PUBLIC KEY)")]
    NotEd25519 {
        /// What the decoder said.
        source: ed25519_dalek::pkcs8::spki::Error,
    },
    /// A key of small order: signatures under it prove nothing.
    #[error("the key is of small order, under which anybody can make signatures")]
    Weak,
    /// The PEM form could not be written.
    #[error("the key has no PEM form")]
    Encode {
        /// What the encoder said.
        source: ed25519_dalek::pkcs8::spki::Error,
    },
}

/// An Ed25519 public key that receipts verify under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads `-----BEGIN PUBLIC KEY-----`.
    ///
    /// # Errors
    /// [`KeyError`] says what the text is instead.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let text = std::str::from_utf8(pem).map_err(|source| KeyError::NotText { source })?;
        let key = VerifyingKey::from_public_key_pem(text.trim()).map_err(|source| KeyError::NotEd25519 { source })?;
        if key.is_weak() {
            return Err(KeyError::Weak);
        }
        Ok(Self(key))
    }

    /// The public half of a signing key.
    #[must_use]
    pub fn of(key: &ed25519_dalek::SigningKey) -> Self {
        Self(key.verifying_key())
    }

    /// The PEM form, with a final line feed.
    ///
    /// # Errors
    /// [`KeyError::Encode`]; not expected of any key.
    pub fn to_pem(&self) -> Result<String, KeyError> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(|source| KeyError::Encode { source })
    }

    /// SHA-256 of the SPKI in DER, which names the key and is the subject of its log's first entry.
    #[must_use]
    pub fn id(&self) -> Sha256 {
        let mut hasher = Hasher::new();
        hasher.update(SPKI_PREFIX);
        hasher.update(self.0.as_bytes());
        Sha256(hasher.finalize().into())
    }

    /// Whether `signature` is this key's over the payload, by the strict rules: canonical S, no point of small order.
    #[must_use]
    pub fn verifies(&self, payload: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.0.verify_strict(&dsse::pae(payload), &signature).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;

    #[test]
    fn the_key_id_is_the_digest_of_the_spki_that_the_library_writes() {
        let key = SigningKey::from_bytes(&[7; 32]).verifying_key();
        let der = key.to_public_key_der().unwrap();
        assert_eq!(PublicKey(key).id(), Sha256(Hasher::digest(der.as_bytes()).into()));
    }

    #[test]
    fn pem_round_trips_and_other_texts_are_refused() {
        let key = PublicKey::of(&SigningKey::from_bytes(&[7; 32]));
        let pem = key.to_pem().unwrap();
        assert_eq!(PublicKey::from_pem(pem.as_bytes()).unwrap(), key);
        assert!(PublicKey::from_pem(format!("\n{pem}\n").as_bytes()).is_ok());
        for bad in ["", "ssh-ed25519 AAAA", &pem.replace("PUBLIC", "PRIVATE"), &pem.replace("MCow", "MCox")] {
            assert!(PublicKey::from_pem(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(matches!(PublicKey::from_pem(&[0xff]), Err(KeyError::NotText { .. })));
    }

    #[test]
    fn a_key_of_small_order_is_refused() {
        // The neutral element: y = 1.
        let mut point = [0_u8; 32];
        point[0] = 1;
        let pem = PublicKey(VerifyingKey::from_bytes(&point).unwrap()).to_pem().unwrap();
        assert!(matches!(PublicKey::from_pem(pem.as_bytes()), Err(KeyError::Weak)));
    }
}
