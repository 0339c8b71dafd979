//! The core of this suite on another machine: Debian's kernel 6.1, cgroup version 2 alone, Landlock without TCP.

use std::time::Duration;

use toolcell_tests::{Need, needs, run_in_virtual_machine};

use crate::core::{self, CORE};

/// Software emulation is some ten times slower than the machine itself: three minutes on two idle processors, and much
/// more where others work too.
const LIMIT: Duration = Duration::from_secs(1_500);

#[test]
fn the_core_of_the_suite_passes_on_a_machine_with_cgroup_version_2_alone() {
    let qemu = Need::Tool("qemu-system-x86_64");
    needs!(qemu, Need::Tool("busybox"), Need::Tool("cpio"), Need::Tool("mke2fs"), Need::Tool("strip"));
    // For who looks into one of them: TOOLCELL_TESTS_IN_VM='verdicts:: kills::a_fork'.
    let chosen = std::env::var("TOOLCELL_TESTS_IN_VM").ok();
    let words: Vec<&str> = chosen.as_deref().map_or(CORE.to_vec(), |words| words.split(' ').collect());
    let report = run_in_virtual_machine(&core::line(&words, &[]), LIMIT);
    // There is no Python there and no OpenSSL; nothing else may be left out.
    core::check("in the virtual machine", &report, &words, &["python3", "PythonVerifiers", "openssl"]);
}
