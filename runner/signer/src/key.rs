//! The receipt key: made once, kept in one file, held in memory that is not swapped and wiped at the end.

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes};
use ed25519_dalek::{Signer as _, SigningKey};
use rustix::fs::OFlags;
use toolcell_receipts::{PublicKey, dsse};
use toolcell_types::Sha256;
use zeroize::{Zeroize as _, Zeroizing};

use crate::SignerError;
use crate::folder::{Folder, KEY_FILE, PUBLIC_FILE, read_all};

/// A PKCS#8 PEM of an Ed25519 key is about 120 bytes.
const KEY_FILE_MAX_BYTES: usize = 4096;
const HALF_KEY: &str = "key.pem.new";
const HALF_PUBLIC: &str = "public.pem.new";

/// The key. Its page is locked (mlock(2)); dropping it wipes it. Short-lived copies on the stack, which each signature
/// makes, are not covered.
pub(crate) struct ReceiptKey {
    // Dropped, that is wiped, before its page is unlocked.
    secret: Box<SigningKey>,
    _lock: region::LockGuard,
}

impl std::fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceiptKey({})", self.id().hex())
    }
}

impl ReceiptKey {
    /// Reads the key; none if there is no file.
    pub(crate) fn load(folder: &Folder) -> Result<Option<Self>, SignerError> {
        let Some(mut file) = folder.open(KEY_FILE, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let content = Zeroizing::new(read_all(&mut file, KEY_FILE, KEY_FILE_MAX_BYTES)?);
        let text = std::str::from_utf8(&content).map_err(|source| SignerError::KeyText { source })?;
        let secret = SigningKey::from_pkcs8_pem(text).map_err(|source| SignerError::Key { source })?;
        Self::hold(Box::new(secret)).map(Some)
    }

    /// A new key, in memory only.
    pub(crate) fn generate() -> Result<Self, SignerError> {
        let mut seed = Zeroizing::new([0_u8; 32]);
        getrandom::fill(seed.as_mut()).map_err(|source| SignerError::Random { source })?;
        Self::hold(Box::new(SigningKey::from_bytes(&seed)))
    }

    fn hold(secret: Box<SigningKey>) -> Result<Self, SignerError> {
        let lock = region::lock(std::ptr::from_ref(secret.as_ref()), size_of::<SigningKey>())
            .map_err(|source| SignerError::Lock { source })?;
        Ok(Self { secret, _lock: lock })
    }

    /// Writes it to its file, which must not be there.
    pub(crate) fn save(&self, folder: &Folder) -> Result<(), SignerError> {
        // Without the public half: the form of RFC 8410 that every reader knows.
        let mut pair = KeypairBytes { secret_key: self.secret.to_bytes(), public_key: None };
        let pem = pair.to_pkcs8_pem(LineEnding::LF);
        pair.secret_key.zeroize();
        let pem = pem.map_err(|source| SignerError::Key { source })?;
        folder.create(KEY_FILE, HALF_KEY, pem.as_bytes())
    }

    /// Writes the public half for those who verify offline, if it is not there already: a disk that is full must not
    /// keep receipts from being served.
    pub(crate) fn publish(&self, folder: &Folder) -> Result<(), SignerError> {
        let pem = self.public_pem()?;
        if folder.has_published(PUBLIC_FILE, pem.as_bytes()) {
            return Ok(());
        }
        folder.publish(PUBLIC_FILE, HALF_PUBLIC, pem.as_bytes())
    }

    /// SHA-256 of the SPKI.
    pub(crate) fn id(&self) -> Sha256 {
        PublicKey::of(&self.secret).id()
    }

    /// The SPKI in PEM.
    pub(crate) fn public_pem(&self) -> Result<String, SignerError> {
        PublicKey::of(&self.secret).to_pem().map_err(|source| SignerError::PublicKey { source })
    }

    /// Ed25519 over the DSSE pre-authentication encoding.
    pub(crate) fn sign(&self, payload: &[u8]) -> [u8; 64] {
        self.secret.sign(&dsse::pae(payload)).to_bytes()
    }
}
