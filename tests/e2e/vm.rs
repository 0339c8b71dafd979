//! The core of this suite on another machine: Debian's kernel 6.1, cgroup version 2 alone, Landlock without TCP.

use std::time::Duration;

use toolcell_tests::{Need, needs, run_in_virtual_machine};

/// The modules that are run there. What they hold is what a cell promises, whatever the machine.
const CORE: [&str; 12] = [
    "controls::",
    "deaths::",
    "escapes::",
    "field::",
    "groups::",
    "kills::",
    "limits::",
    "own_machine::",
    "posture::",
    "receipts::",
    "unified::",
    "verdicts::",
];
/// Of these, what takes long by its nature and asks nothing of the kernel that another does not; and ordinary users, whom
/// the machine has no programs to make.
const LEFT_OUT: [&str; 9] = [
    "kills_at_any_moment",
    "thirty_calls",
    "hundred_megabytes",
    "a_term_right_after",
    "rootless::",
    "limits::values::",
    "long_silence",
    "asks_for_ever",
    "cancel_at_the_moment",
];
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
    let skips = LEFT_OUT.iter().flat_map(|name| ["--skip", name]);
    let report = run_in_virtual_machine(&words.iter().copied().chain(skips).collect::<Vec<_>>(), LIMIT);
    let counts = format!(
        "in the virtual machine: {} passed, {} failed, {} skipped, in {} s",
        report.passed.len(),
        report.failed.len(),
        report.skipped.len(),
        report.took.as_secs()
    );
    std::io::Write::write_all(&mut std::io::stderr(), format!("{counts}\n{:#?}\n", report.skipped).as_bytes()).unwrap();
    assert!(report.is_complete, "{counts}; it did not come to its end:\n{}", report.text);
    assert!(report.failed.is_empty(), "{counts}: {:#?}\n{}", report.failed, report.text);
    // There is no Python there, no OpenSSL and no script(1); nothing else may be left out.
    let known = ["python3", "PythonVerifiers", "openssl", "\"script\""];
    let unknown: Vec<&String> =
        report.skipped.iter().filter(|skip| !known.iter().any(|need| skip.contains(need))).collect();
    assert!(unknown.is_empty(), "{counts}: {unknown:#?}");
    for module in words {
        assert!(report.passed.iter().any(|name| name.starts_with(module)), "{counts}: nothing of {module}");
    }
}
