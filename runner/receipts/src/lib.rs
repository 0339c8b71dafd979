//! Receipts: signed statements about what an attempt was going to do (*intent*) and what it did (*outcome*).
//!
//! A receipt is a DSSE v1 envelope around an in-toto Statement v1. [`statement`] makes and reads payloads, [`dsse`] wraps
//! and opens them, [`assemble`] makes an answer from a payload and the kept output, [`verify`] checks a receipt offline
//! against a public key. Member names are those of in-toto and SLSA provenance v1 where these define one, and the
//! answer's own words elsewhere.
//!
//! Guarantees: a payload is serialised once and then only ever handled as bytes; what is read back from a payload is
//! exactly what was put in. Does not: hold a private key, do I/O, read a clock.

pub mod assemble;
mod clock;
mod controls;
pub mod dsse;
mod key;
#[cfg(test)]
mod samples;
pub mod statement;
pub mod verify;

pub use clock::{BadTime, UnixMicros};
pub use controls::{OBSERVED_MAX_BYTES, control_items};
pub use key::{KeyError, PublicKey};
