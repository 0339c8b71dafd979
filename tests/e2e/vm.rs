//! The core of this suite on another machine: Debian's kernel 6.1, cgroup version 2 alone, Landlock without TCP.

use std::time::Duration;

use toolcell_tests::{Need, needs, run_in_virtual_machine};

use crate::core::{self, CORE};

/// What is run there besides the core: every limit, cases from the field, and what changes the machine itself.
const MORE: [&str; 3] = ["field::", "limits::", "own_machine::"];
/// Of these, what takes long by its nature and asks nothing of the kernel that another does not.
const LEFT_OUT: [&str; 5] =
    ["limits::nested::", "limits::values::", "long_silence", "asks_for_ever", "cancel_at_the_moment"];
/// Software emulation is some ten times slower than the machine itself: three minutes on two idle processors, and much
/// more where others work too.
const LIMIT: Duration = Duration::from_secs(1_500);

#[test]
fn the_core_of_the_suite_passes_on_a_machine_with_cgroup_version_2_alone() {
    let qemu = Need::Tool("qemu-system-x86_64");
    needs!(qemu, Need::Tool("busybox"), Need::Tool("cpio"), Need::Tool("mke2fs"), Need::Tool("strip"));
    // For who looks into one of them: TOOLCELL_TESTS_IN_VM='verdicts:: kills::a_fork'.
    let chosen = std::env::var("TOOLCELL_TESTS_IN_VM").ok();
    let all = || CORE.into_iter().chain(MORE).collect();
    let words: Vec<&str> = chosen.as_deref().map_or_else(all, |words| words.split(' ').collect());
    let report = run_in_virtual_machine(&core::line(&words, &LEFT_OUT), LIMIT);
    // There is no Python there, no OpenSSL and no script(1); nothing else may be left out.
    core::check("in the virtual machine", &report, &words, &["python3", "PythonVerifiers", "openssl", "\"script\""]);
}
