//! The signer: a process of its own with the receipt key, that signs payloads for the daemon and never signs a fork.
//!
//! It starts with a directory and one end of a socket. It makes the key on the first start, reads each payload that it is
//! asked to sign, and signs only what follows directly on the last entry that it signed, is of a kind that it knows and
//! says of itself what is true of this instance. What it signed it remembers durably before it answers.
//!
//! Guarantees: at most one entry per index is ever signed by a key whose memory is not rolled back together with it; a
//! key, or a memory, that others could read or change is refused; the private key leaves neither the process nor its
//! file. Does not: judge whether a payload is true, keep the log, use threads or the network.

mod check;
mod confine;
mod error;
mod folder;
mod key;
mod memory;
mod serve;

pub use confine::confine;
pub use error::SignerError;
pub use folder::{KEY_FILE, PUBLIC_FILE};
pub use serve::{SignerConfig, run};
