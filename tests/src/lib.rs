//! The harness that the end-to-end suite drives `toolcell` with, as a user does: it starts the binary, talks HTTP over
//! the Unix socket, runs the command line, and looks at the kernel from outside.
//!
//! Guarantees: an [`Instance`] has a state directory, a socket and a range of user ids of its own, so that tests run
//! side by side; it ends only processes that it started; when it goes, the test fails if anything is left of it.
//! It does not reach into any private item of the product: of the workspace it knows only the words of the wire.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a harness fails its test by panicking, and is no part of the product"
)]

mod carried;
mod cell_watch;
mod command;
mod container;
mod fresh_machine;
mod groups;
mod home;
mod host;
mod http;
mod instance;
mod need;
mod opens;
mod ordinary_user;
mod place;
mod process;
mod programs;
mod remains;
mod request;
mod running;
mod virtual_machine;
mod wait;

pub use carried::Report;
pub use cell_watch::CellWatch;
pub use command::{Finished, Live, command, run, run_with_input, toolcell, toolcell_path, workspace_root};
pub use container::{Container, Flag, Grounds, Started};
pub use fresh_machine::FreshMachine;
pub use groups::Groups;
pub use home::{Home, Setup};
pub use host::{CgroupRoot, cgroup_roots, groups_named, kernel_version, mount_lines};
pub use http::{Connection, Head, Response};
pub use instance::Instance;
pub use need::{Need, missing};
pub use opens::{Difference, Opens};
pub use ordinary_user::OrdinaryUser;
pub use place::{open_dir, venv_python};
pub use process::{OPENER, Process, descriptors_of, status_field, wait_gone};
pub use programs::{PROGRAMS_INSIDE, program_inside, program_on_host, programs_dir};
pub use remains::Remains;
pub use request::{Request, fresh_id};
pub use running::Running;
pub use virtual_machine::run_in_virtual_machine;
pub use wait::{DEADLINE, eventually, within};

/// Returns from the test, counted as skipped, unless everything it needs is there. With `TOOLCELL_TESTS_MUST_RUN=1` a
/// missing need is a failure.
#[macro_export]
macro_rules! needs {
    ($($need:expr),+ $(,)?) => {
        if $crate::missing(module_path!(), &[$($need),+]) {
            return;
        }
    };
}
