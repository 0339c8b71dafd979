//! What users of comparable systems ran into and no other module shows: hanging, frozen and prompting programs, what a
//! program finds of processors, system calls that it tries first, kernels that lack something. The list of all such cases
//! is `tests/field-cases.toml`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;
use toolcell_tests::{
    Instance, Need, PROGRAMS_INSIDE, Request, Running, Setup, cgroup_roots, command, needs, program_inside,
    program_on_host, programs_dir, run,
};
use toolcell_types::{Answer, Verdict};

const EPERM: &str = "1";
const ENOSYS: &str = "38";
const EAFNOSUPPORT: &str = "97";

fn text(answer: &Answer) -> String {
    serde_json::to_value(&answer.stdout).unwrap().as_str().unwrap().to_owned()
}

fn lines(text: &str) -> BTreeSet<&str> {
    text.lines().collect()
}

#[test]
fn a_program_that_asks_for_ever_ends_at_a_limit_and_what_it_asked_is_kept() {
    needs!(Need::Root);
    let instance = Instance::start();
    // Nobody answers: standard input is empty, and reading it fails at once.
    let line = "while :; do printf 'Continue? [y/n] '; read answer && exit 0; done";
    let limits = json!({ "output_limit_bytes": 100_000, "wall_ms": 120_000, "cpu_ms": 120_000 });
    let asked = instance.call(&Request::shell(line).limits(limits.clone()));
    assert_eq!(asked.verdict, Verdict::OutputLimit, "{asked:?}");
    assert!(text(&asked).starts_with("Continue? [y/n] Continue?"), "{asked:?}");
    let told = instance.call(&Request::shell(line).limits(limits).with("stdin", json!("y\n")));
    assert_eq!((&told.verdict, text(&told).as_str()), (&Verdict::Exited { exit_code: 0 }, "Continue? [y/n] "));
}

#[test]
fn a_program_that_says_nothing_ends_at_the_wall_limit() {
    needs!(Need::Root);
    let instance = Instance::start();
    let silent = instance.call(&Request::exec(&["sleep", "600"]).limits(json!({ "wall_ms": 700 })));
    assert_eq!((&silent.verdict, text(&silent).as_str()), (&Verdict::WallLimit, ""), "{silent:?}");
}

#[test]
fn where_no_limit_is_asked_for_the_tool_s_own_is_in_force() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::exec(&["true"]));
    let clock = answer.controls.iter().find(|item| item["id"] == "wall-clock").unwrap();
    assert_eq!(clock["requested"]["limit_ms"], 10_000, "{clock}");
    let left = clock["observed"]["timer_left_us"].as_u64().unwrap();
    assert!((1..=10_000_000).contains(&left), "the timer that will fire: {clock}");
}

/// Longer than what HTTP clients and servers by custom take for a dead connection.
const SILENCE: &str = "33";

#[test]
fn a_long_silence_is_no_timeout_of_the_client_s_nor_of_a_follower_s() {
    needs!(Need::Root);
    let instance = Instance::start();
    let line = format!("echo before; sleep {SILENCE}; echo after");
    let request = Request::shell(&line).limits(json!({ "wall_ms": 300_000 }));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| instance.call(&request));
        let follows = scope.spawn(|| {
            let request = Request::shell(&format!("echo up; {line}")).limits(json!({ "wall_ms": 300_000 }));
            let mut follow = Running::until_up(&instance, &request).follow("stdout");
            let mut seen = Vec::new();
            while let Some(piece) = follow.chunk().unwrap() {
                seen.extend_from_slice(&piece);
            }
            String::from_utf8(seen).unwrap()
        });
        let typed = run(&mut instance.cli(&["run", "--timeout", "300s", "--", "sh", "-c", &line]));
        assert_eq!((typed.code, typed.text().as_str()), (0, "before\nafter\n"), "{}", typed.stderr);
        let answer = waits.join().unwrap();
        assert_eq!((&answer.verdict, text(&answer).as_str()), (&Verdict::Exited { exit_code: 0 }, "before\nafter\n"));
        assert_eq!(follows.join().unwrap(), "up\nbefore\nafter\n");
    });
}

/// Stops every process of the cell as a whole, as an administrator can: by the freezer of either version.
fn freeze(instance: &Instance) {
    let is_unified = cgroup_roots().into_iter().find(|root| root.has("memory")).unwrap().is_unified();
    let (file, text, controller) =
        if is_unified { ("cgroup.freeze", "1", "memory") } else { ("freezer.state", "FROZEN", "freezer") };
    let root = instance.cgroup_dir(controller);
    let cell = instance.cell_groups().into_iter().find(|dir| dir.starts_with(&root)).expect("the cell has a group");
    std::fs::write(cell.join(file), text).unwrap();
    let state = if is_unified { ("cgroup.events", "frozen 1") } else { ("freezer.state", "FROZEN") };
    toolcell_tests::eventually("the cell to be frozen", || {
        std::fs::read_to_string(cell.join(state.0)).unwrap().contains(state.1).then_some(())
    });
}

#[test]
fn a_frozen_cell_ends_at_the_wall_limit_and_on_cancel() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = |wall_ms: u64| Request::program("waits", &["deaf"]).limits(json!({ "wall_ms": wall_ms }));
    let cancelled = Running::until_up(&instance, &request(600_000));
    freeze(&instance);
    assert_eq!(cancelled.cancel().status() / 100, 2);
    assert_eq!(cancelled.answer().verdict, Verdict::Cancelled);
    let timed = Running::until_up(&instance, &request(4000));
    freeze(&instance);
    let tree = timed.processes();
    assert_eq!(timed.answer().verdict, Verdict::WallLimit);
    assert!(tree.len() >= 2 && tree.iter().all(|process| !process.is_alive()), "{tree:?}");
    assert_eq!(instance.cell_groups(), Vec::<PathBuf>::new());
}

#[test]
fn a_cancel_at_the_moment_of_the_end_harms_nobody() {
    needs!(Need::Root);
    let instance = Instance::start();
    for _ in 0..10 {
        let running = Running::submit(&instance, &Request::program("does_nothing", &[]));
        assert_eq!(running.cancel().status() / 100, 2);
        let answer = running.answer();
        assert!(["cancelled", "exited"].contains(&answer.verdict.cause()), "{answer:?}");
        assert_eq!(running.cancel().answer(), answer, "again, when it is over");
    }
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
    assert_eq!(instance.health().live_calls, 0);
}

#[test]
fn a_program_sees_the_processors_that_it_may_run_on_and_the_report_tells_its_share() {
    needs!(Need::Root, Need::Tool("taskset"), Need::Tool("nproc"));
    let count = |instance: &Instance| text(&instance.call(&Request::exec(&["nproc"]))).trim().parse::<usize>().unwrap();
    let all = std::thread::available_parallelism().unwrap().get();
    assert_eq!(count(&Instance::start()), all);
    let one = Setup::default().wrapped(&["taskset", "-c", "0"]).start();
    assert_eq!(count(&one), 1, "as many as whoever started serve may use");
    let answer = one.call(&Request::exec(&["true"]).limits(json!({ "cpu_millis": 250 })));
    let share = answer.controls.iter().find(|item| item["id"] == "cgroup.cpu").unwrap();
    assert!(share["observed"].to_string().contains("25000"), "of 100000: {share}");
}

#[test]
fn a_call_of_another_abi_ends_the_program_by_the_filter_s_signal() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::program("field_calls", &["old_abi"]));
    assert_eq!(answer.verdict, Verdict::Signaled { signal: "SIGSYS".to_owned() }, "{answer:?}");
    assert_eq!(text(&answer), "asks\n", "what it had printed is there");
    let message = answer.error.unwrap().message;
    assert!(message.contains("SIGSYS"), "{message}");
}

#[test]
fn calls_that_libraries_try_first_work_or_are_said_not_to_be_there() {
    needs!(Need::Root);
    let instance = Instance::start();
    let newer = text(&instance.call(&Request::program("field_calls", &["newer"])));
    let expected =
        ["faccessat2 ok", "openat2 ok", "statx ok", "close_range ok", "memfd_create ok", "rseq ok", "clone3 38"];
    assert_eq!(newer.lines().collect::<Vec<_>>(), expected, "only then do libraries fall back to clone");
    let unknown = text(&instance.call(&Request::program("field_calls", &["unknown"])));
    assert_eq!(lines(&unknown), BTreeSet::from([ENOSYS]), "of what no kernel has, never that it is not permitted");
}

#[test]
fn no_family_of_sockets_but_the_local_one_is_to_be_had() {
    needs!(Need::Root);
    let instance = Instance::start();
    let families = text(&instance.call(&Request::program("field_calls", &["families"])));
    let allowed = BTreeSet::from([EPERM, EAFNOSUPPORT]);
    assert!(!families.is_empty() && lines(&families).is_subset(&allowed), "{families}");
    let outside = run(command(program_on_host("field_calls")).arg("families")).expect_code(0).text();
    assert!(lines(&outside).contains("ok"), "the control: {outside}");
}

#[test]
fn a_kernel_without_landlock_is_told_so_and_nothing_is_started() {
    needs!(Need::Root);
    let filter = program_on_host("without_landlock").to_string_lossy().into_owned();
    let without = || Setup::default().wrapped(&[&filter]);
    // Also where the loss of the control is accepted: cells are not made without.
    for flags in [&[][..], &["--accept-unavailable", "landlock.fs"]] {
        let refused = without().flags(flags).fails_to_start();
        assert_ne!(refused.code, 0);
        let said = refused.stderr;
        assert!(said.contains("this kernel has no Landlock") && said.contains("lsm="), "and what to do: {said}");
        assert!(!said.contains("ready"), "before anything is served: {said}");
    }
}

#[test]
fn where_parts_of_proc_are_covered_nothing_starts() {
    needs!(Need::Root, Need::Tool("unshare"));
    let words = |script| ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", script];
    let covers = words("set -e; mount --bind /dev/null /proc/timer_list; exec \"$0\" \"$@\"");
    let told = Setup::default().wrapped(&covers).fails_to_start();
    assert!(told.stderr.contains("a cell's own /proc is refused"), "{}", told.stderr);
    assert!(told.stderr.contains("systempaths=unconfined"), "{}", told.stderr);
    let instance = Setup::default().wrapped(&words("exec \"$0\" \"$@\"")).start();
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 }, "the control");
}

#[test]
fn a_caller_without_a_terminal_gets_none_inside_and_one_with_a_terminal_neither() {
    needs!(Need::Root, Need::Tool("script"));
    let instance = Instance::start();
    let look = "ls /dev/tty /dev/pts 2>/dev/null; tty; ps -o tty= 2>/dev/null | sort -u; echo over";
    let mut line = instance.cli(&["run", "--ro", &format!("{}:{PROGRAMS_INSIDE}", programs_dir().display()), "--"]);
    line.args(["sh", "-c", look, &program_inside("waits")]);
    let words: Vec<String> = std::iter::once(line.get_program())
        .chain(line.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''")))
        .collect();
    let mut script = command("script");
    script.args(["-q", "-e", "-c", &words.join(" "), "/dev/null"]);
    let seen = run(&mut script).expect_code(0).text();
    assert!(seen.contains("not a tty") && seen.contains("over"), "{seen}");
    assert!(!seen.contains("/dev/pts") && !seen.contains("/dev/tty"), "{seen}");
}
