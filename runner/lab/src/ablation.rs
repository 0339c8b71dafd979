//! The battery of probes, run in cells with all controls and with controls switched off: which control stops what.
//!
//! A *probe* is a program that tries what must not work ([`Battery`]). What it needs of the world, listeners, files, a
//! process to attack, is made anew for each call ([`outside`]), and tells afterwards what it saw: the word of a probe alone
//! is never enough. A call's result counts once its receipt was verified and each control was reported as asked
//! ([`Outcome`]). All results together are a matrix, from which a [`Report`] is worked out; that part is pure.
//!
//! Guarantees: what is started and made for a call ends and goes with it, after an error and after an interruption as
//! well. A probe that breaks down is told apart from one that was stopped. Does not: start an instance, or print.

mod battery;
mod call;
mod error;
mod header;
mod judge;
mod matrix;
mod outcome;
pub mod outside;
mod plan;
mod probe;
mod programs;
mod report;
mod run;
mod tally;
mod words;

pub use battery::{Battery, BatteryError};
pub use error::AblationError;
pub use header::{Fault, HeaderError};
pub use outcome::Outcome;
pub use probe::{Language, Probe};
pub use report::{
    Asked, ControlRow, Declaration, Declared, Lonely, Machine, PairRow, ProbeRow, Report, Summary, Through, Without,
};
pub use run::{Progress, Settings, run};
pub use words::{Class, Instrument, Kind, Witness};
