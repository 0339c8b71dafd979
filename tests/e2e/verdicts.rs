//! Each cause of an end, from the program that ends so.

use serde_json::json;
use toolcell_tests::{Instance, Need, Request, Running, needs};
use toolcell_types::{Answer, CallState, Effect, Status, Verdict};

const MIB: u64 = 1 << 20;

fn ended(answer: &Answer, cause: &str) {
    assert_eq!(answer.verdict.cause(), cause, "{:?} {:?} {:?}", answer.verdict, answer.error, answer.usage);
    assert_eq!((answer.effect, answer.status), (Effect::None, Status::Ok), "no channel was open: {answer:?}");
}

/// A tool that did not succeed, by the contract's words.
fn failed(answer: &Answer, cause: &str) {
    ended(answer, cause);
    assert_eq!((answer.state, answer.is_error, answer.retryable), (CallState::Failed, true, true));
    let error = answer.error.as_ref().expect("a failure says why");
    assert_eq!(error.code, cause);
    assert!(!error.message.is_empty() && !error.remedy.is_empty());
}

fn hit(answer: &Answer, limit: &str) -> bool {
    answer.limits_hit.iter().any(|hit| hit.limit == limit && !hit.seen.is_empty())
}

#[test]
fn exit_zero_is_complete() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::shell("echo out; echo err >&2"));
    ended(&answer, "exited");
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 });
    assert_eq!((answer.state, answer.is_error, answer.retryable), (CallState::Complete, false, false));
    assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "out\n");
    assert_eq!(serde_json::to_value(&answer.stderr).unwrap(), "err\n");
    assert!(answer.error.is_none());
    assert!(answer.limits_hit.is_empty(), "{:?}", answer.limits_hit);
}

#[test]
fn another_exit_code_is_a_failure_of_the_tool_with_that_code() {
    needs!(Need::Root);
    let instance = Instance::start();
    for code in [1, 3, 75, 255] {
        let answer = instance.call(&Request::shell(&format!("exit {code}")));
        assert_eq!(answer.verdict, Verdict::Exited { exit_code: code });
        if code != 75 {
            failed(&answer, "exited");
        }
    }
}

#[test]
fn exit_137_by_the_program_is_exited_137_and_nothing_else() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::shell("exit 137"));
    failed(&answer, "exited");
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 137 });
    assert_eq!(answer.usage.oom_kills, Some(0));
}

#[test]
fn a_signal_of_its_own_is_signaled_by_name() {
    needs!(Need::Root);
    let instance = Instance::start();
    for (number, name) in [("9", "SIGKILL"), ("15", "SIGTERM"), ("11", "SIGSEGV"), ("31", "SIGSYS"), ("6", "SIGABRT")] {
        let answer = instance.call(&Request::program("dies", &[number]));
        failed(&answer, "signaled");
        assert_eq!(answer.verdict, Verdict::Signaled { signal: name.to_owned() });
    }
}

#[test]
fn its_own_sigkill_just_before_the_wall_limit_is_signaled() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limit_ms = 1000;
    for _ in 0..5 {
        let answer = instance.call(&Request::program("dies", &["9", "900"]).limits(json!({ "wall_ms": limit_ms })));
        let wall_us = answer.usage.wall_us.expect("the wall clock is always known");
        if wall_us < limit_ms * 1000 {
            failed(&answer, "signaled");
            assert_eq!(answer.verdict, Verdict::Signaled { signal: "SIGKILL".to_owned() });
            assert!(wall_us >= 900_000, "{wall_us}");
            return;
        }
        failed(&answer, "wall_limit");
    }
    panic!("five times the machine stalled for 100 ms");
}

#[test]
fn the_wall_limit_kills_and_is_told_from_the_program_s_own_end() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::program("waits", &["deaf"]).limits(json!({ "wall_ms": 300 })));
    failed(&answer, "wall_limit");
    assert!(hit(&answer, "wall_ms"), "{:?}", answer.limits_hit);
    let wall_us = answer.usage.wall_us.expect("the wall clock is always known");
    assert!((300_000..5_000_000).contains(&wall_us), "{wall_us}");
    assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "up\n", "what it printed before is kept");
}

#[test]
fn the_cpu_limit_counts_every_process_of_the_tree() {
    needs!(Need::Root);
    let instance = Instance::start();
    for processes in ["1", "3"] {
        let limits = json!({ "wall_ms": 20_000, "cpu_ms": 400, "cpu_millis": 2000 });
        let answer = instance.call(&Request::program("spins", &[processes]).limits(limits));
        failed(&answer, "cpu_limit");
        assert!(hit(&answer, "cpu_ms"), "{:?}", answer.limits_hit);
        let cpu = answer.usage.cpu_user_us.unwrap() + answer.usage.cpu_system_us.unwrap();
        assert!((390_000..2_000_000).contains(&cpu), "{processes}: {cpu}");
    }
}

#[test]
fn the_processor_share_slows_the_tree_down() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limits = json!({ "wall_ms": 20_000, "cpu_ms": 300, "cpu_millis": 200 });
    let answer = instance.call(&Request::program("spins", &[]).limits(limits));
    failed(&answer, "cpu_limit");
    // How much of it was throttling depends on what else runs on the machine.
    assert!(answer.usage.throttled_us.is_some(), "{:?}", answer.usage);
    assert!(answer.usage.wall_us.unwrap() > 1_000_000, "a fifth of a processor takes five times as long");
}

#[test]
fn a_main_process_killed_for_memory_is_memory_limit() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::program("memory_hog", &["main"]).limits(json!({ "memory_bytes": 32 * MIB })));
    failed(&answer, "memory_limit");
    assert!(hit(&answer, "memory_bytes"), "{:?}", answer.limits_hit);
    assert!(answer.usage.oom_kills.unwrap() >= 1);
    let peak = answer.usage.memory_peak_bytes.unwrap();
    assert!((16 * MIB..=32 * MIB).contains(&peak), "{peak}");
}

#[test]
fn a_child_killed_for_memory_does_not_end_the_call() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limits = json!({ "memory_bytes": 32 * MIB });
    let answer = instance.call(&Request::program("memory_hog", &["child", "0"]).limits(limits.clone()));
    ended(&answer, "exited");
    assert_eq!((answer.state, answer.is_error), (CallState::Complete, false));
    assert!(answer.usage.oom_kills.unwrap() >= 1 && hit(&answer, "memory_bytes"), "{answer:?}");

    let answer = instance.call(&Request::program("memory_hog", &["child", "5"]).limits(limits));
    failed(&answer, "memory_limit");
}

#[test]
fn refused_forks_are_pids_limit_only_when_the_main_process_ends_badly() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limits = json!({ "pids": 16 });
    let answer = instance.call(&Request::program("fork_bomb", &["exit"]).limits(limits.clone()));
    failed(&answer, "pids_limit");
    assert!(hit(&answer, "pids") && answer.usage.forks_refused.unwrap() >= 1, "{answer:?}");
    assert!(answer.usage.left_running_killed.unwrap() >= 1, "{:?}", answer.usage);
    if let Some(peak) = answer.usage.pids_peak {
        assert_eq!(peak, 16);
    }

    let answer = instance.call(&Request::program("fork_bomb", &["zero"]).limits(limits));
    ended(&answer, "exited");
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 });
    assert!(answer.usage.forks_refused.unwrap() >= 1, "reported all the same: {answer:?}");
}

#[test]
fn more_output_than_allowed_is_output_limit() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limits = json!({ "output_limit_bytes": 4 * MIB, "output_keep_bytes": 64 * 1024 });
    let answer = instance.call(&Request::program("floods", &["0"]).limits(limits));
    failed(&answer, "output_limit");
    assert!(hit(&answer, "output_limit_bytes"), "{:?}", answer.limits_hit);
    let seen = answer.usage.stdout_bytes.unwrap();
    assert!((4 * MIB..64 * MIB).contains(&seen), "{seen}");
    let dropped = answer.truncated.stdout.expect("most of it was not kept");
    assert_eq!(dropped.dropped_bytes, seen - 64 * 1024);
}

#[test]
fn kept_output_is_head_and_tail_and_never_kills() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = Instance::start();
    let program = "import sys; sys.stdout.write('h'*1000 + 'x'*100000 + 't'*1000)";
    let request = Request::tool("python", json!({ "code": program }));
    let whole = instance.call(&request);
    assert!(whole.truncated.stdout.is_none());
    assert_eq!(whole.usage.stdout_bytes, Some(102_000));

    let exec = Request::exec(&["python3", "-c", program]).limits(json!({ "output_keep_bytes": 2000 }));
    let cut = instance.call(&exec);
    assert_eq!(cut.verdict, Verdict::Exited { exit_code: 0 });
    let kept = serde_json::to_value(&cut.stdout).unwrap().as_str().unwrap().to_owned();
    assert!(kept.starts_with('h') && kept.ends_with('t'), "{kept:.80}");
    assert_eq!(cut.truncated.stdout.unwrap().dropped_bytes, 100_000);
}

#[test]
fn cancelling_kills_and_says_so() {
    needs!(Need::Root);
    let instance = Instance::start();
    let running = Running::until_up(&instance, &Request::program("waits", &["deaf"]));
    let response = running.cancel();
    assert!([200, 202].contains(&response.status()), "{}", response.text());
    let answer = running.answer();
    failed(&answer, "cancelled");
    let again = running.cancel();
    assert_eq!(again.status(), 200, "a call that is over gives its answer: {}", again.text());
    assert_eq!(again.answer(), answer);
}

fn start_failed(answer: &Answer, errno: &str) -> String {
    failed(answer, "start_failed");
    let Verdict::StartFailed { stage, errno: seen } = &answer.verdict else {
        panic!("{:?}", answer.verdict);
    };
    assert_eq!(seen, errno);
    stage.clone()
}

#[test]
fn a_program_that_cannot_be_started_says_at_which_stage_and_why() {
    needs!(Need::Root);
    let instance = Instance::start();
    let scripts = tempfile::tempdir().unwrap();
    for (name, text, mode) in [
        ("bad-interpreter", "#!/nowhere/sh\n", 0o755),
        ("text", "no program\n", 0o755),
        ("script", "#!/bin/sh\n", 0o644),
    ] {
        use std::os::unix::fs::PermissionsExt as _;
        let path = scripts.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let host = scripts.path().to_string_lossy().into_owned();
    let run = |path: &str| instance.call(&Request::exec(&[path]).mount(&host, "/scripts"));
    assert_eq!(start_failed(&run("/scripts/none"), "ENOENT"), "exec");
    assert_eq!(start_failed(&run("no-such-program"), "ENOENT"), "exec");
    assert_eq!(start_failed(&run("/scripts/bad-interpreter"), "ENOENT"), "exec");
    assert_eq!(start_failed(&run("/scripts/script"), "EACCES"), "exec");
    assert_eq!(start_failed(&run("/scripts/text"), "ENOEXEC"), "exec");
    assert_eq!(start_failed(&run("/tmp"), "EACCES"), "exec");

    let lost = instance.call(&Request::exec(&["true"]).arg("cwd", json!("/nowhere")));
    assert_eq!(start_failed(&lost, "ENOENT"), "cwd");
    let found = instance.call(&Request::exec(&["pwd"]).arg("cwd", json!("/usr/bin")));
    assert_eq!(serde_json::to_value(&found.stdout).unwrap(), "/usr/bin\n");
}

#[test]
fn our_own_kill_goes_before_memory() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limits = json!({ "memory_bytes": 32 * MIB, "wall_ms": 2000 });
    let answer = instance.call(&Request::program("memory_hog", &["child-stay"]).limits(limits));
    failed(&answer, "wall_limit");
    assert!(answer.usage.oom_kills.unwrap() >= 1, "the counter rose all the same: {:?}", answer.usage);
    assert!(hit(&answer, "memory_bytes") && hit(&answer, "wall_ms"), "{:?}", answer.limits_hit);
}

#[test]
fn memory_goes_before_processes_and_processes_before_the_exit_code() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limits = json!({ "memory_bytes": 32 * MIB, "pids": 16 });
    let answer = instance.call(&Request::program("memory_hog", &["child-forks"]).limits(limits));
    failed(&answer, "memory_limit");
    assert!(answer.usage.forks_refused.unwrap() >= 1, "{:?}", answer.usage);
    let answer = instance.call(&Request::program("fork_bomb", &["exit"]).limits(json!({ "pids": 16 })));
    failed(&answer, "pids_limit");
}

#[test]
fn a_full_scratch_is_the_program_s_to_handle_and_stands_in_no_verdict() {
    needs!(Need::Root);
    let instance = Instance::start();
    let limits = json!({ "tmp_bytes": 4 * MIB, "file_bytes": 64 * MIB });
    let answer = instance.call(&Request::program("memory_hog", &["tmp"]).limits(limits));
    ended(&answer, "exited");
    assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "28\n", "ENOSPC");
}

#[test]
fn a_file_beyond_its_limit_dies_by_sigxfsz() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::program("memory_hog", &["tmp"]).limits(json!({ "file_bytes": MIB })));
    failed(&answer, "signaled");
    assert_eq!(answer.verdict, Verdict::Signaled { signal: "SIGXFSZ".to_owned() });
    assert!(hit(&answer, "file_bytes"), "{:?}", answer.limits_hit);
}

#[test]
fn figures_are_those_of_the_tree() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::shell("sleep 0.2; sleep 0.1 & true"));
    let usage = &answer.usage;
    assert!(usage.wall_us.unwrap() >= 200_000, "{usage:?}");
    assert!(usage.memory_peak_bytes.unwrap() > 100_000, "{usage:?}");
    assert_eq!(usage.left_running_killed, Some(1), "{usage:?}");
    assert_eq!((usage.oom_kills, usage.forks_refused), (Some(0), Some(0)), "{usage:?}");
}
