//! What can only be shown by changing the machine itself: its clock is set, and it is given swap. For the suite's virtual
//! machine, alone and after everything else.

use std::process::Command;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};
use serde_json::{Value, json};
use toolcell_tests::{Instance, Need, Request, Running, command, needs, program_on_host, run};
use toolcell_types::{Answer, Verdict};

const MIB: u64 = 1 << 20;
const DAY: i64 = 86_400;
/// Longer than any of the calls here may take on a slow machine, and far below a day.
const SOME_TIME_US: u64 = 60_000_000;

/// The time of day, put back to what it would be.
struct TimeOfDay {
    set: TimeSpec,
    since: TimeSpec,
}

impl TimeOfDay {
    fn keep() -> Self {
        let now = |clock| clock_gettime(clock).unwrap();
        Self { set: now(ClockId::CLOCK_REALTIME), since: now(ClockId::CLOCK_MONOTONIC) }
    }

    /// Sets it so many seconds ahead of what it is, or back.
    fn step(&self, seconds: i64) {
        let now = clock_gettime(ClockId::CLOCK_REALTIME).unwrap();
        clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::new(now.tv_sec() + seconds, now.tv_nsec())).unwrap();
    }
}

impl Drop for TimeOfDay {
    fn drop(&mut self) {
        let passed = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap() - self.since;
        clock_settime(ClockId::CLOCK_REALTIME, self.set + passed).unwrap();
    }
}

fn metadata(answer: &Answer) -> Value {
    use base64::Engine as _;
    let payload = base64::engine::general_purpose::STANDARD.decode(&answer.receipt.payload).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    statement["predicate"]["runDetails"]["metadata"].clone()
}

/// The day of month of a time stamp, `2026-11-30T…`.
fn day(metadata: &Value, name: &str) -> String {
    metadata[name].as_str().unwrap_or_else(|| panic!("no {name} in {metadata}"))[..10].to_owned()
}

/// Programs that are up when the clock is set, and how each ends all the same, after how many milliseconds at least.
fn calls() -> [(&'static str, Request, Verdict, u64); 4] {
    let limits = |wall_ms: u64, cpu_ms: u64| json!({ "wall_ms": wall_ms, "cpu_ms": cpu_ms });
    let spin = Request::shell("echo up; while :; do :; done");
    [
        ("by itself", Request::shell("echo up; sleep 2"), Verdict::Exited { exit_code: 0 }, 2000),
        ("wall", Request::program("waits", &[]).limits(limits(4000, 10_000)), Verdict::WallLimit, 4000),
        ("cpu", spin.limits(limits(600_000, 2500)), Verdict::CpuLimit, 2500),
        ("deadline", Request::program("waits", &[]).with("deadline_ms", json!(6000)), Verdict::WallLimit, 1),
    ]
}

#[test]
fn limits_figures_and_verdicts_are_right_when_the_time_of_day_is_set() {
    needs!(Need::OwnMachine);
    let time_of_day = TimeOfDay::keep();
    let instance = Instance::start();
    let mut stepped = Vec::new();
    for seconds in [DAY, -2 * DAY, DAY] {
        for (what, request, verdict, least_ms) in calls() {
            let running = Running::until_up(&instance, &request);
            time_of_day.step(seconds);
            let answer = running.answer();
            assert_eq!(answer.verdict, verdict, "{what}, {seconds} s: {answer:?}");
            let wall_us = answer.usage.wall_us.unwrap();
            assert!((least_ms * 1000..SOME_TIME_US).contains(&wall_us), "{what}, {seconds} s: {wall_us} µs");
            let used = answer.usage.cpu_user_us.unwrap() + answer.usage.cpu_system_us.unwrap();
            assert!(used < SOME_TIME_US, "{what}, {seconds} s: {used} µs");
            let has_deadline = answer.limits_hit.iter().any(|hit| hit.limit == "deadline_ms");
            assert_eq!(has_deadline, what == "deadline", "{what}: {:?}", answer.limits_hit);
            let stamps = metadata(&answer);
            // The control: stamps are of the time of day, and it was set.
            assert_ne!(day(&stamps, "startedOn"), day(&stamps, "finishedOn"), "{what}, {seconds} s: {stamps}");
            stepped.push(answer);
        }
    }
    // What was written out of the order of its stamps is in order by its numbers, and holds after the next start.
    let again = instance.stop().start();
    assert_eq!(again.receipts().len(), 1 + 2 * stepped.len());
    for answer in &stepped {
        assert_eq!(again.get(&format!("/v1/calls/{}", answer.call_id)).answer(), *answer);
    }
    let file = again.home().dir().join("receipt.json");
    let key = again.home().dir().join("key.pem");
    std::fs::write(&key, run(&mut again.cli(&["keys", "show"])).expect_code(0).stdout).unwrap();
    for answer in &stepped {
        std::fs::write(&file, serde_json::to_vec(&answer.receipt).unwrap()).unwrap();
        let mut verify = toolcell_tests::toolcell(&["verify"]);
        done(verify.arg("--key").arg(&key).arg(&file));
    }
}

fn done(command: &mut Command) {
    assert_eq!(run(command).expect_code(0).code, 0);
}

/// Swap on a file, until dropped.
struct Swap(std::path::PathBuf);

impl Swap {
    fn on(size_mib: u64) -> Self {
        let path = std::path::PathBuf::from("/var/tmp/swap");
        let (of, count) = (format!("of={}", path.display()), format!("count={size_mib}"));
        done(command("dd").args(["if=/dev/zero", "bs=1M", &count, &of]));
        done(command("chmod").arg("600").arg(&path));
        done(command("mkswap").arg(&path));
        done(command("swapon").arg(&path));
        Self(path)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        done(command("swapoff").arg(&self.0));
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// The program in a group of ours with that much memory, and as much swap as there is.
fn outside(memory_bytes: u64) -> Command {
    let mut shell = command("sh");
    let script = "set -e; dir=/sys/fs/cgroup/swapping; mkdir -p $dir; echo $1 > $dir/memory.max
        echo $$ > $dir/cgroup.procs; exec $2 anon 24";
    shell.args(["-c", script, "sh", &memory_bytes.to_string()]).arg(program_on_host("uses_memory"));
    shell
}

#[test]
fn what_does_not_fit_into_memory_does_not_go_into_swap() {
    needs!(Need::OwnMachine);
    let swap = Swap::on(128);
    let instance = Instance::start();
    let take = |memory_bytes: u64| {
        let limits = json!({ "memory_bytes": memory_bytes, "wall_ms": 60_000 });
        instance.call(&Request::program("uses_memory", &["anon", "24"]).limits(limits))
    };
    let answer = take(16 * MIB);
    assert_eq!(answer.verdict, Verdict::MemoryLimit, "{answer:?}");
    let item = answer.controls.iter().find(|item| item["id"] == "cgroup.memory").unwrap();
    assert_eq!(item["observed"]["memory.swap.max"], 0, "{item}");
    assert_eq!(take(64 * MIB).verdict, Verdict::Exited { exit_code: 0 });
    // The control: with the same memory and swap beside it, the program gets all.
    assert_eq!(run(&mut outside(16 * MIB)).expect_code(0).text(), format!("anon got {} errno 0\n", 24 * MIB));
    drop(std::fs::remove_dir("/sys/fs/cgroup/swapping"));
    drop(swap);
}
