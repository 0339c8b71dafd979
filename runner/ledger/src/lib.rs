//! The ledger: the durable, append-only truth about calls, in one SQLite file, and the kept output beside it.
//!
//! One thread writes. It takes what is queued, gives each entry its place in the log, has the whole group signed, commits
//! it in one transaction (WAL, `synchronous=FULL`), and only then answers. Reads go over a connection of their own.
//!
//! Guarantees: an append that was answered survives a power loss on a file system that honours fsync(2); entries form one
//! chain of leaf hashes; a call has at most one live attempt; the log is opened only if it is what the signer remembers
//! and every row follows from the payloads that the signer signed (see `check`), entries that the signer signed and the
//! ledger did not commit being appended first. After a failed commit nothing more is written. Does not: read, make or
//! verify payloads (closures and [`Payloads`] do), hold a key, use the network, or start with a library, file system or
//! file mode that would make the above untrue.

mod blobs;
mod chain;
mod check;
mod error;
mod location;
mod open;
mod reader;
mod record;
mod sign;
mod store;
mod writer;

pub use blobs::{BlobError, Blobs};
pub use check::ProgressFn;
pub use error::{BoxError, LedgerError};
pub use location::FREE_BYTES_MIN;
pub use open::{Ledger, Opening, QUEUE_MAX};
pub use reader::Reader;
pub use record::{
    AnswerFn, Append, Attempt, AttemptKey, Committed, DoneFn, Entry, Header, PayloadFn, Payloads, Record, SealFn,
};
pub use sign::{Sign, SignError};

#[cfg(test)]
mod tests;
