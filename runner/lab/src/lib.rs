//! What drives a daemon from outside as any other client does, to measure it.
//!
//! Guarantees: only the API is used, and nothing is measured that was not first seen to be right: an answer counts if the
//! program really ran in a cell with every required control in force and its receipt verifies. Does not: judge figures.
//! A slow machine is no failure.

pub mod bench;
