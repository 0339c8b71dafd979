//! The daemon: HTTP on a Unix socket in, plans to the launcher, signed receipts and answers out.
//!
//! [`run()`] confines the process, opens the ledger, settles what an earlier life left open, and answers requests until it
//! is asked to end. A call goes through `pipeline`, top to bottom: decode, identify, gate, intent (signed, fsynced), plan,
//! cell, verdict, effect, outcome (signed, fsynced), reply.
//!
//! Guarantees: nothing starts before its intent is durable; nothing is answered before its outcome is; a call starts at
//! most once; memory is bounded whatever tools print and clients send. Does not: start processes, touch the host's
//! files (it cannot), hold a key, or decide why a cell ended (the launcher sees that).

mod answers;
mod api;
mod calls;
#[cfg(test)]
mod cardboard;
mod cell;
mod clock;
mod config;
mod confine;
mod daemon;
mod decode;
mod effect;
mod error;
mod gate;
mod identify;
mod intent;
mod launcher;
mod logs;
mod outcome;
mod output;
mod pipeline;
mod plan;
mod policy_files;
mod recovery;
mod run;
mod serve;
mod shares;
mod signer;
mod starting;
mod survey;
mod timing;
mod verdict;

pub use config::{DaemonConfig, LogFormat, UnavailableControl};
pub use error::DaemonError;
pub use launcher::LauncherError;
pub use run::run;
