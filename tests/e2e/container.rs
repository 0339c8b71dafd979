//! In a container without any privilege added: the suite's core as root, and what is said where a flag is missing.

use std::time::Duration;

use toolcell_tests::{Flag, Grounds, Need, needs};

use crate::core::{self, CORE};

/// What cannot be shown there, and why not.
const LEFT_OUT: [&str; 3] = [
    // Each of these compares the cell with what is allowed outside of it, and most of that is refused to a container too.
    "escapes::every_denied_act_fails_inside_and_gets_through_outside",
    "escapes::in_a_cell_with_mounts_no_socket_file_of_the_host_can_be_reached_either",
    // The observer would need CAP_SYS_PTRACE: a cell's environment can be read by nobody else.
    "posture::live_cell_posture_seen_from_outside_equals_the_report",
];
/// Half a minute on two idle processors.
const LIMIT: Duration = Duration::from_secs(300);

#[test]
fn the_core_of_the_suite_passes_as_root_in_a_container() {
    needs!(Need::Root, Need::ContainerEngine, Need::Tool("busybox"), Need::Tool("strip"));
    let chosen = std::env::var("TOOLCELL_TESTS_IN_CONTAINER").ok();
    let all = CORE.into_iter().filter(|module| *module != "unified::" || Need::UnifiedCgroups.is_there());
    let words: Vec<&str> = chosen.as_deref().map_or_else(|| all.collect(), |words| words.split(' ').collect());
    let grounds = Grounds::prepare();
    let container = grounds.container().flags_with_state_at(&Flag::ALL, "/var/tmp");
    let report = container.run_suite(&core::line(&words, &LEFT_OUT), LIMIT);
    core::check("in a container as root", &report, &words, &["python3", "PythonVerifiers", "openssl"]);
}
