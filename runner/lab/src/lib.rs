//! What drives a daemon from outside as any other client does, to measure it and to try its cells.
//!
//! Guarantees: only the API is used, and nothing counts that was not first seen to be right: an answer does if the
//! program really ran in a cell with every control as it was asked for and its receipt verifies. Does not: judge figures.
//! A slow machine is no failure.

pub mod ablation;
pub mod bench;
mod process;
