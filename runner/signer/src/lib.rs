//! signer
