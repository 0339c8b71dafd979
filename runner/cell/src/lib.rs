//! The launcher: the privileged part. One thread, no runtime, no network, no outside JSON.
//!
//! It alone makes, limits, reads back, kills and removes control groups, clones cells, owns their clocks and decides
//! why each ended. It reads the bounded first half of a plan and passes the second half on unread. Cells are forked
//! from it without exec, so it holds no key, no policy, and no tenant's data once a cell is cloned.
//!
//! Reading order: `launcher` (the loop) → `workshop` (plan to cloned cell) → `stages` (inside the cell) → `live`
//! (a cell's life) → `readback` (what it really is) → `verdict` (why it ended).
#![deny(unused_results)]

mod begun;
mod cgroup;
mod clock;
mod config;
pub mod container;
mod devtree;
mod error;
mod hostpaths;
mod idmap;
mod ids;
mod kernel_file;
mod launcher;
mod link;
mod live;
mod mountinfo;
mod opener;
mod probe;
mod process;
mod readback;
mod record;
mod stages;
mod survey;
mod verdict;
mod wiped;
mod workshop;

pub use cgroup::{CgroupError, OwnGroup, are_groups_given, find_groups, settle_groups};
pub use config::LauncherConfig;
pub use error::LauncherError;
pub use ids::CellIds;
pub use launcher::run;
pub use link::LinkError;
pub use probe::{ProbeError, probe};
