//! Killed for memory: a child, the main process, a program that is only just being started, the cell's own init; and
//! what only looks like it.

use nix::sys::signal::Signal;
use serde_json::json;
use toolcell_tests::{Instance, Need, Process, Request, Running, needs};
use toolcell_types::{Answer, Verdict};

use super::{MIB, hit, hits, roomy, well};

fn hog(instance: &Instance, words: &[&str], memory_bytes: u64) -> Answer {
    instance.call(&Request::program("memory_hog", words).limits(roomy(json!({ "memory_bytes": memory_bytes }))))
}

#[test]
fn a_child_s_death_is_counted_once_and_the_parent_s_end_is_the_verdict() {
    needs!(Need::Root);
    let instance = super::instance();
    let answer = hog(&instance, &["child", "0"], 32 * MIB);
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{answer:?}");
    assert_eq!((answer.usage.oom_kills, answer.is_error), (Some(1), false), "{answer:?}");
    assert_eq!(hits(&answer), ["memory_bytes"]);
    let seen = &answer.limits_hit[0].seen;
    assert!(seen.contains("oom_kill") && seen.ends_with(" 1"), "the kernel's counter and its count: {seen}");
}

#[test]
fn the_code_that_shells_make_of_it_and_its_signal_are_not_taken_for_it() {
    needs!(Need::Root);
    let instance = super::instance();
    let killed = hog(&instance, &["main"], 32 * MIB);
    assert_eq!(killed.verdict, Verdict::MemoryLimit, "{killed:?}");
    // The same signal, the same exit code, the same words, without the kernel's counter.
    let signal = Signal::SIGKILL as i32;
    let own = instance.call(&Request::program("dies", &[&signal.to_string()]));
    assert_eq!(own.verdict, Verdict::Signaled { signal: "SIGKILL".to_owned() });
    let code = instance.call(&Request::shell("echo 'Out of memory: Killed process 7' >&2; exit 137"));
    assert_eq!(code.verdict, Verdict::Exited { exit_code: 137 });
    for answer in [own, code] {
        assert_eq!((answer.usage.oom_kills, hits(&answer)), (Some(0), Vec::new()), "{answer:?}");
    }
}

#[test]
fn static_memory_counts_when_it_is_touched_and_not_when_it_is_declared() {
    needs!(Need::Root);
    let instance = super::instance();
    let run = |words: &[&str], memory_bytes: u64| {
        let limits = roomy(json!({ "memory_bytes": memory_bytes }));
        instance.call(&Request::program("huge_static", words).limits(limits))
    };
    well(&run(&[], 8 * MIB));
    let touched = run(&["all"], 8 * MIB);
    assert_eq!(touched.verdict, Verdict::MemoryLimit, "{touched:?}");
    well(&run(&["all"], 96 * MIB));
}

/// A start that memory was too little for is said so, whichever step it was that the kernel ended.
fn is_of_memory(answer: &Answer) -> bool {
    let error = answer.error.as_ref().expect("a failure says why");
    let start_failed = matches!(&answer.verdict, Verdict::StartFailed { errno, .. } if errno == "ENOMEM");
    (answer.verdict == Verdict::MemoryLimit && hit(answer, "memory_bytes"))
        || (start_failed && error.remedy.contains("limits.memory_bytes"))
}

#[test]
fn a_program_that_memory_is_too_little_to_start_is_never_said_to_have_failed_by_itself() {
    needs!(Need::Root);
    let instance = super::instance();
    // Arguments are copied by the exec itself, before there is a program.
    let words: Vec<String> =
        std::iter::once("/bin/true".to_owned()).chain((0..6).map(|_| "a".repeat(120_000))).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let small = (8..=32).step_by(4).map(|eighths| eighths * MIB / 8).chain([8 * MIB]);
    let calls = [MIB, 2 * MIB, 8 * MIB].map(|bytes| (Request::exec(&["true"]), bytes));
    let calls = calls.into_iter().chain(small.map(|bytes| (Request::exec(&words), bytes)));
    let (mut causes, mut wrong) = (Vec::new(), Vec::new());
    for (request, memory_bytes) in calls {
        let answer = instance.call(&request.limits(roomy(json!({ "memory_bytes": memory_bytes }))));
        causes.push(answer.verdict.cause().to_owned());
        if answer.verdict != (Verdict::Exited { exit_code: 0 }) && !is_of_memory(&answer) {
            wrong.push(format!("{memory_bytes}: {:?} {:?} {:?}", answer.verdict, answer.error, answer.usage));
        }
    }
    assert_eq!(causes.last().map(String::as_str), Some("exited"), "with enough it runs: {causes:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(causes.iter().any(|cause| cause != "exited"), "the control: there was too little: {causes:?}");
}

/// The kernel kills whom it likes best by this (proc(5)).
fn prefer(process: &Process, score: &str) {
    std::fs::write(format!("/proc/{}/oom_score_adj", process.pid), score).unwrap();
}

#[test]
fn an_init_that_is_killed_for_memory_is_memory_limit() {
    needs!(Need::Root);
    let instance = Instance::start();
    let gate = tempfile::tempdir_in(instance.home().dir()).unwrap();
    std::fs::set_permissions(gate.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let line = "echo up; until [ -e /gate/open ]; do :; done; exec /programs/memory_hog main";
    let request = Request::shell(line)
        .mount(&toolcell_tests::programs_dir().to_string_lossy(), toolcell_tests::PROGRAMS_INSIDE)
        .mount(&gate.path().to_string_lossy(), "/gate")
        .limits(roomy(json!({ "memory_bytes": 32 * MIB })));
    let running = Running::until_up(&instance, &request);
    let tool = running.process("sh");
    let init = Process::read(tool.parent).expect("its parent is the cell's init");
    assert_eq!((score(&tool), score(&init)), (1000, 0), "of the cell's own accord it is the tool that goes");
    prefer(&tool, "0");
    prefer(&init, "1000");
    std::fs::write(gate.path().join("open"), "").unwrap();
    let answer = running.answer();
    assert_eq!(answer.verdict, Verdict::MemoryLimit, "{answer:?}");
    assert!(hit(&answer, "memory_bytes") && answer.usage.oom_kills.unwrap() >= 1, "{answer:?}");
    assert!(!init.is_alive() && !tool.is_alive());
    well(&instance.call(&Request::exec(&["true"])));
}

fn score(process: &Process) -> i64 {
    process.file("oom_score_adj").trim().parse().unwrap()
}

#[test]
fn the_parts_of_the_instance_are_in_no_cell_s_group_and_outlive_its_storms() {
    needs!(Need::Root);
    let instance = Instance::start();
    let parts = [instance.launcher(), instance.daemon(), instance.signer()];
    for part in &parts {
        assert!(score(part) < 1000, "{part:?}");
    }
    let storm = |words: &[&str]| {
        let limits = json!({ "memory_bytes": 24 * MIB, "pids": 64, "wall_ms": 1500 });
        Running::submit(&instance, &Request::program(words[0], &words[1..]).limits(limits))
    };
    let storms = [storm(&["memory_hog", "child-forks"]), storm(&["fork_bomb", "stay"]), storm(&["memory_hog", "main"])];
    for part in &parts {
        assert!(!part.file("cgroup").contains("/cell-"), "{}", part.file("cgroup"));
    }
    for storm in storms {
        let answer = storm.answer();
        assert!(["memory_limit", "wall_limit"].contains(&answer.verdict.cause()), "{answer:?}");
        assert!(!answer.receipt.signatures.is_empty(), "a whole answer, with its receipt");
    }
    for part in &parts {
        let now = Process::read(part.pid).filter(|now| now.line == part.line && now.state != 'Z');
        assert!(now.is_some(), "{part:?}");
    }
    well(&instance.call(&Request::exec(&["true"])));
}
