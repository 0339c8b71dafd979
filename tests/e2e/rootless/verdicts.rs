//! Each cause of an end that needs no cgroup, and the second lines of what does.

use std::time::Duration;

use serde_json::json;
use toolcell_tests::{Instance, Need, OrdinaryUser, Process, Request, Running, eventually, needs, wait_gone};
use toolcell_types::{Answer, CallState, Effect, Verdict};

use super::{both_users, start};

const MIB: u64 = 1 << 20;

fn is_over(instance: &Instance, request: &Request) -> Answer {
    let answer = instance.call(request);
    assert_eq!(answer.effect, Effect::None, "{answer:?}");
    assert_eq!(instance.cell_processes(), Vec::new(), "the answer leaves after the tree is gone");
    answer
}

#[test]
fn every_cause_of_an_end_is_told() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        let verdict = |request: Request| is_over(&instance, &request).verdict;
        assert_eq!(verdict(Request::exec(&["true"])), Verdict::Exited { exit_code: 0 });
        assert_eq!(verdict(Request::shell("exit 3")), Verdict::Exited { exit_code: 3 });
        assert_eq!(verdict(Request::shell("exit 137")), Verdict::Exited { exit_code: 137 });
        assert_eq!(verdict(Request::program("dies", &["11"])), Verdict::Signaled { signal: "SIGSEGV".to_owned() });
        let quick = json!({ "wall_ms": 300 });
        assert_eq!(verdict(Request::program("waits", &["deaf"]).limits(quick)), Verdict::WallLimit);
        let little = json!({ "output_keep_bytes": 4096, "output_limit_bytes": MIB });
        assert_eq!(verdict(Request::program("floods", &["0"]).limits(little)), Verdict::OutputLimit);
        for (program, errno) in [("/nonexistent", "ENOENT"), ("/etc/passwd", "EACCES")] {
            let wanted = Verdict::StartFailed { stage: "exec".to_owned(), errno: errno.to_owned() };
            assert_eq!(verdict(Request::exec(&[program])), wanted);
        }
        let running = Running::until_up(&instance, &Request::program("waits", &["deaf"]));
        assert_eq!(running.cancel().status() / 100, 2);
        assert_eq!(running.answer().verdict, Verdict::Cancelled);
        assert_eq!(instance.cell_processes(), Vec::new());
    }
}

#[test]
fn the_whole_tree_dies_with_the_main_process_the_wall_limit_and_a_cancel() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        for what in ["daemon", "stdout", "stopped", "chain"] {
            let answer = is_over(&instance, &Request::program("leaves_children", &[what]));
            assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{what}");
            assert!(answer.usage.wall_us.is_some_and(|us| us < 5_000_000), "{what}: the answer does not wait for them");
            let slow = Request::program("leaves_children", &[what, "stay"]).limits(json!({ "wall_ms": 400 }));
            assert_eq!(is_over(&instance, &slow).verdict, Verdict::WallLimit, "{what}");
        }
        let request = Request::program("leaves_children", &["daemon", "stay"]);
        let running = Running::until_up(&instance, &request);
        let tree: Vec<Process> =
            eventually("init, main and child", || Some(instance.cell_processes()).filter(|tree| tree.len() >= 3));
        assert_eq!(running.cancel().status() / 100, 2);
        assert_eq!(running.answer().verdict, Verdict::Cancelled);
        wait_gone(&tree);
    }
}

#[test]
fn a_fork_bomb_is_bounded_by_the_limit_of_processes_per_user() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        let limits = json!({ "pids": 20, "wall_ms": 20_000 });
        // Ends with 1 as soon as a fork is refused.
        let answer = is_over(&instance, &Request::program("fork_bomb", &["exit"]).limits(limits.clone()));
        assert_eq!(answer.verdict, Verdict::Exited { exit_code: 1 }, "nobody counts, so the cause is the program's");
        // Another cell is not counted with it, although without ids of their own both are the same user's.
        let others = Running::until_up(&instance, &Request::program("waits", &[]));
        let line = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; wait; echo all";
        let answer = instance.call(&Request::shell(line).limits(limits));
        assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "all\n", "{answer:?}");
        assert_eq!(others.cancel().status() / 100, 2);
        assert_eq!(others.answer().verdict, Verdict::Cancelled);
    }
}

#[test]
fn a_process_gets_no_more_private_memory_than_the_limit() {
    needs!(Need::SubordinateIds, Need::Tool("python3"));
    let user = OrdinaryUser::with_ids();
    let instance = start(&user);
    let limits = json!({ "memory_bytes": 64 * MIB });
    let of = |mib: u64| Request::exec(&["python3", "-c", &format!("b = bytearray({mib} << 20); print(len(b))")]);
    let fits = is_over(&instance, &of(16).limits(limits.clone()));
    assert_eq!(fits.verdict, Verdict::Exited { exit_code: 0 }, "the control: {fits:?}");
    let exceeds = is_over(&instance, &of(100).limits(limits));
    assert_eq!(exceeds.verdict, Verdict::Exited { exit_code: 1 }, "{exceeds:?}");
    assert!(serde_json::to_value(&exceeds.stderr).unwrap().as_str().unwrap().contains("MemoryError"), "{exceeds:?}");
}

#[test]
fn a_process_that_spins_is_ended_by_its_limit_of_processor_seconds() {
    needs!(Need::OrdinaryUsers);
    let user = OrdinaryUser::without_ids();
    let instance = start(&user);
    let limits = json!({ "cpu_ms": 1000, "wall_ms": 30_000 });
    let answer = is_over(&instance, &Request::program("spins", &[]).limits(limits));
    // Soft and hard limit are the same second: SIGKILL (setrlimit(2)).
    assert_eq!(answer.verdict, Verdict::Signaled { signal: "SIGKILL".to_owned() }, "{answer:?}");
    assert!(answer.usage.wall_us.is_some_and(|us| us >= 1_000_000), "{answer:?}");
    assert!(answer.state == CallState::Failed);
    std::thread::sleep(Duration::ZERO);
}

#[test]
fn static_memory_beyond_the_limit_is_ended_by_the_kernel_before_the_program_begins() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        let run = |memory_bytes: u64| {
            is_over(&instance, &Request::program("huge_static", &[]).limits(json!({ "memory_bytes": memory_bytes })))
        };
        // No counter tells of it, so that the verdict is what the kernel made of it (execve(2): SIGSEGV).
        let refused = run(8 * MIB);
        assert_eq!(refused.verdict, Verdict::Signaled { signal: "SIGSEGV".to_owned() }, "{refused:?}");
        assert_eq!(serde_json::to_value(&refused.stdout).unwrap(), "");
        assert_eq!(run(96 * MIB).verdict, Verdict::Exited { exit_code: 0 });
    }
}
