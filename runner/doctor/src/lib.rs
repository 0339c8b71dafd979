//! What "does it work here?" is answered with: what the host is like, a program that tries each control from inside of a
//! cell, and the rules by which what was seen becomes a report.
//!
//! [`probe`] runs in a cell and nowhere else; [`HostFacts`](toolcell_types::doctor::HostFacts) are read by [`host_facts`]
//! in a process that sees the host; all else is pure: facts in, words out. Every remedy that names a setting of the
//! machine stands in [`remedies`], for the report and for refusals alike. Does not: build cells, start anything but itself
//! in the cell that it tries, decide whether a call may run.

mod assess;
pub mod container;
mod host;
pub mod probe;
pub mod remedies;
mod warnings;

pub use assess::{Built, Ended, Looked, assess};
pub use host::host_facts;
pub use warnings::warnings;
