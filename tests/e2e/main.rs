//! The end-to-end suite: real processes, real cells, the kernel as witness. One module per promise.
//!
//! Every test that something is refused stands beside a control in which the same thing, outside the cell or next to
//! it inside, gets through.

#[cfg(test)]
mod ablate;
#[cfg(test)]
mod ablation;
#[cfg(test)]
mod api;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod battery;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod command_line;
#[cfg(test)]
mod container;
#[cfg(test)]
mod controls;
#[cfg(test)]
mod core;
#[cfg(test)]
mod crates;
#[cfg(test)]
mod deaths;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod escapes;
#[cfg(test)]
mod field;
#[cfg(test)]
mod field_cases;
#[cfg(test)]
mod fire;
#[cfg(test)]
mod first_call;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod own_machine;
#[cfg(test)]
mod posture;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod refused_starts;
#[cfg(test)]
mod replays;
#[cfg(test)]
mod rootless;
#[cfg(test)]
mod unified;
#[cfg(test)]
mod verdicts;
#[cfg(test)]
mod vm;
