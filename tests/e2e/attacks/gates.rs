//! System calls that cost the whole machine or start a program on the host, and the neighbour of each.

use std::collections::BTreeSet;

use toolcell_tests::{Instance, Need, Request, command, needs, program_on_host, run};

use super::{EPERM, results, stdout};

/// Refused inside; outside they work, or get past the permission check to what is not there.
const REFUSED: &[&str] = &[
    "set_core",
    "set_core_high_bits",
    "change_core",
    "change_core_by_name",
    "change_core_high_bits",
    "change_core_low_half_null",
    "change_core_of_parent",
    "filter_socket",
    "filter_high_bits",
    "filter_socket_by_descriptor",
    "filter_port",
    "filter_calls",
    "filter_calls_older_way",
    "map_huge",
    "map_huge_of_a_size",
    "memory_file_huge",
    "memory_file_huge_sealable",
    "segment_huge",
    "watch",
    "sync_everything",
    "sync_file_system",
];

/// Allowed on both sides.
const NEIGHBOURS: &[&str] = &[
    "ask_core",
    "lower_files",
    "lower_file_size",
    "other_option",
    "ask_filters",
    "set_name",
    "map_plain",
    "memory_file_plain",
    "segment_plain",
    "watch_nothing",
    "sync_file",
    "sync_data",
];

#[test]
fn what_no_group_counts_and_what_stops_the_machine_is_refused_and_its_neighbours_are_not() {
    needs!(Need::Root);
    let instance = Instance::start();
    let dir = tempfile::tempdir().unwrap();
    let inside = results(&stdout(&instance.call(&Request::program("attacks", &["/tmp"]))));
    let outside = results(&run(command(program_on_host("attacks")).arg(dir.path())).expect_code(0).text());
    let mut wrong: BTreeSet<String> = BTreeSet::new();
    for act in REFUSED {
        let (inside, outside) = (inside.get(*act).map(String::as_str), outside.get(*act).map(String::as_str));
        let gets_through = outside.is_some_and(|seen| ![EPERM, "13", "38", "999"].contains(&seen));
        if inside != Some(EPERM) || !gets_through {
            let _new = wrong.insert(format!("{act}: inside {inside:?}, outside {outside:?}"));
        }
    }
    for act in NEIGHBOURS {
        let (inside, outside) = (inside.get(*act).map(String::as_str), outside.get(*act).map(String::as_str));
        if (inside, outside) != (Some("ok"), Some("ok")) {
            let _new = wrong.insert(format!("{act}: inside {inside:?}, outside {outside:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(inside.len(), REFUSED.len() + NEIGHBOURS.len() + 2, "every act has a rule: {inside:?}");
    assert_eq!((inside["core_before"].as_str(), inside["core_after"].as_str()), ("1 1", "1 1"));
    assert_eq!(outside["core_after"], "0 0", "the control: outside it was changed");
}

/// Prints the core limit, tries to lower and to raise it in every way that Python has, and lowers another one.
const CORE: &str = "
import resource as r
def attempt(name, act):
    try:
        act()
        print(name, 'ok')
    except (ValueError, OSError):
        print(name, 'no')
print('read', r.getrlimit(r.RLIMIT_CORE)[0])
attempt('other', lambda: r.setrlimit(r.RLIMIT_NOFILE, (16, 16)))
attempt('raise', lambda: r.setrlimit(r.RLIMIT_CORE, (r.RLIM_INFINITY, r.RLIM_INFINITY)))
attempt('lower', lambda: r.setrlimit(r.RLIMIT_CORE, (0, 0)))
attempt('lower_by_process', lambda: r.prlimit(0, r.RLIMIT_CORE, (0, 0)))
attempt('ask_by_process', lambda: r.prlimit(0, r.RLIMIT_CORE))
";

#[test]
fn the_core_limit_is_one_and_no_language_can_change_it() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = Instance::start();
    let python = ["/usr/bin/python3", "-I", "-c", CORE];
    let inside = stdout(&instance.call(&Request::exec(&python)));
    assert_eq!(inside, "read 1\nother ok\nraise no\nlower no\nlower_by_process no\nask_by_process ok\n");
    let outside = run(command(python[0]).args(&python[1..])).expect_code(0).text();
    let outside = results(&outside);
    let of = |name: &str| outside.get(name).map(String::as_str);
    assert_eq!((of("lower"), of("lower_by_process"), of("raise")), (Some("ok"), Some("ok"), Some("ok")), "the control");
}

#[test]
fn the_shell_cannot_change_the_core_limit_and_can_change_others() {
    needs!(Need::Root);
    let instance = Instance::start();
    let line = "(ulimit -c 0) 2>/dev/null && echo core changed || echo core stays\n\
                (ulimit -c unlimited) 2>/dev/null && echo core raised || echo core not raised\n\
                (ulimit -n 16) 2>/dev/null && echo files changed || echo files stay\n\
                grep core /proc/self/limits";
    let inside = stdout(&instance.call(&Request::shell(line)));
    let lines: Vec<&str> = inside.lines().collect();
    assert_eq!(lines[..3], ["core stays", "core not raised", "files changed"], "{inside}");
    let limit: Vec<&str> = lines[3].split_whitespace().skip(4).take(2).collect();
    assert_eq!(limit, ["1", "1"], "{inside}");
    let outside = run(command("/bin/sh").args(["-c", line])).expect_code(0).text();
    assert!(outside.starts_with("core changed\n"), "the control: {outside}");
}
