//! The kernel calls that no safe crate offers, and the few sequences around them that every part of toolcell needs.
//!
//! This is the only crate with `unsafe`. Each wrapper does one system call, takes and returns owned or borrowed
//! descriptors, and keeps the errno. Nothing here knows what a cell, a call or a receipt is.
#![expect(unsafe_code, reason = "clone3, mount_setattr, close_range and descriptor hand-over have no safe wrapper")]

mod fds;
mod filter;
mod fork;
mod memory;
mod mounts;
mod root;
mod sysv;
mod trial;
mod user;

pub use fds::{close_except, close_from, inherited_fd, is_path_only, keep_over_exec, limit_fds_to_stdio, peer_groups};
pub use filter::{FilterInstruction, install_filter};
pub use fork::{Child, ForkError, clone_process, exec, reset_signals, spawn};
pub use memory::sealed_memory;
pub use mounts::{MountAttr, clear_mount_attributes, map_mount_ids, set_mount_attributes};
pub use root::{RootBind, Users, map_own_user, private_root, unshare_with_own_user};
pub use sysv::{MessageQueue, Semaphore, SharedSegment};
pub use trial::ask_for_io_uring;
pub use user::{
    BecomeError, become_user, empty_capabilities, keep_capabilities_over_exec, keep_nothing_over_exec,
    parent_death_signal, remain_user, without_capabilities,
};
