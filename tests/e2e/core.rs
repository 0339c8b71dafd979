//! The core of this suite, which is carried to other machines: what a cell promises, whatever the machine.

use toolcell_tests::Report;

/// The modules that are run there.
pub(crate) const CORE: [&str; 12] = [
    "ablation::",
    "battery::probes_that_need_no_python",
    "controls::",
    "deaths::",
    "doctor::",
    "escapes::",
    "groups::",
    "kills::",
    "posture::",
    "receipts::",
    "unified::",
    "verdicts::",
];
/// Of these, what takes long by its nature and asks nothing of the kernel that another does not; and ordinary users, whom
/// those machines have no programs to make.
const LEFT_OUT: [&str; 9] = [
    "kills_at_any_moment",
    "thirty_calls",
    "hundred_megabytes",
    "a_term_right_after",
    "rootless::",
    "doctor::a_place_that_cannot_be_one",
    "doctor::a_program_that_a_cell_cannot_execute",
    "doctor::many_who_ask_at_once",
    "doctor::the_table_names_every_control",
];

/// The words of the test binary's command line: these modules, without what is left out everywhere and without `more`.
pub(crate) fn line<'a>(modules: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let skips = LEFT_OUT.iter().chain(more).flat_map(|name| ["--skip", *name]);
    modules.iter().copied().chain(skips).collect()
}

/// The same for modules that ordinary users are there for.
pub(crate) fn line_for_users<'a>(modules: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    modules.iter().copied().chain(more.iter().flat_map(|name| ["--skip", *name])).collect()
}

/// Says the counts, for the test command's summary, and fails unless everything ran and passed. Only tests that need one of
/// `known` may be skipped there.
pub(crate) fn check(place: &str, report: &Report, modules: &[&str], known: &[&str]) {
    let counts = format!(
        "{place}: {} passed, {} failed, {} skipped, in {} s",
        report.passed.len(),
        report.failed.len(),
        report.skipped.len(),
        report.took.as_secs()
    );
    std::io::Write::write_all(&mut std::io::stderr(), format!("{counts}\n{:#?}\n", report.skipped).as_bytes()).unwrap();
    assert!(report.is_complete, "{counts}; it did not come to its end:\n{}", report.text);
    assert!(report.failed.is_empty(), "{counts}: {:#?}\n{}", report.failed, report.text);
    let unknown: Vec<&String> =
        report.skipped.iter().filter(|skip| !known.iter().any(|need| skip.contains(need))).collect();
    assert!(unknown.is_empty(), "{counts}: {unknown:#?}");
    for module in modules {
        assert!(report.passed.iter().any(|name| name.starts_with(module)), "{counts}: nothing of {module}");
    }
}
