//! The signer as the ledger sees it.

use toolcell_types::signing::SignerStatus;

/// Why nothing was signed, or nobody knows.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The signer looked at a payload and said no; it remembers nothing of the group.
    #[error("the signer refused payload {at} of the group: {detail}")]
    Refused {
        /// Which payload of the group, from 0.
        at: u32,
        /// Why.
        detail: String,
    },
    /// The signer could not be reached, or its answer was cut off.
    #[error("the signer cannot be reached")]
    Unreachable {
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The signer's answer makes no sense.
    #[error("the signer answered with something else: {detail}")]
    Protocol {
        /// What was expected.
        detail: String,
    },
}

/// The other end of the signer's socket.
pub trait Sign: Send {
    /// What the signer remembers.
    ///
    /// # Errors
    /// [`SignError`]; the ledger is then not opened.
    fn status(&mut self) -> Result<SignerStatus, SignError>;

    /// Signs payloads, one signature each in their order; the signer has durably remembered the group when it answers.
    /// `meanwhile` runs once, between question and answer.
    ///
    /// # Errors
    /// [`SignError`]; the ledger then stops, since the signer may remember what the ledger does not hold.
    fn sign(&mut self, payloads: &[Vec<u8>], meanwhile: &mut dyn FnMut()) -> Result<Vec<[u8; 64]>, SignError>;
}
