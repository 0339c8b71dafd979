//! One limit inside another: the verdict and the list of limits name the one that was reached first, and only that.

use serde_json::{Value, json};
use toolcell_tests::{Instance, Need, Request, needs};
use toolcell_types::{Answer, Verdict};

use super::{ENOSPC, MIB, hits, printed, roomy};

fn call(instance: &Instance, program: &[&str], limits: Value) -> Answer {
    instance.call(&Request::program(program[0], &program[1..]).limits(roomy(limits)))
}

/// It ended so, and these limits are all that were reached.
fn ends_by(answer: &Answer, cause: &str, limits: &[&str]) {
    assert_eq!((answer.verdict.cause(), hits(answer)), (cause, limits.to_vec()), "{answer:?}");
}

#[test]
fn wall_and_processor_time_in_either_order() {
    needs!(Need::Root);
    let instance = super::instance();
    let spins = |wall_ms: u64, cpu_ms: u64| {
        call(&instance, &["spins", "1"], json!({ "wall_ms": wall_ms, "cpu_ms": cpu_ms, "cpu_millis": 4000 }))
    };
    ends_by(&spins(500, 60_000), "wall_limit", &["wall_ms"]);
    ends_by(&spins(60_000, 300), "cpu_limit", &["cpu_ms"]);
    // Who sleeps uses no processor: a small limit of it does not matter.
    ends_by(&call(&instance, &["waits"], json!({ "wall_ms": 500, "cpu_ms": 400 })), "wall_limit", &["wall_ms"]);
}

#[test]
fn memory_and_the_scratch_in_either_order() {
    needs!(Need::Root);
    let instance = super::instance();
    let fill = |memory: u64, tmp: u64| {
        let limits = json!({ "memory_bytes": memory * MIB, "tmp_bytes": tmp * MIB, "file_bytes": 256 * MIB });
        call(&instance, &["uses_memory", "tmp", "48"], limits)
    };
    ends_by(&fill(24, 64), "memory_limit", &["memory_bytes"]);
    let full = fill(96, 16);
    ends_by(&full, "exited", &["tmp_bytes"]);
    assert_eq!((printed(&full, "got"), printed(&full, "errno")), (16 * MIB, ENOSPC));
    ends_by(&fill(96, 64), "exited", &[]);
}

#[test]
fn one_file_and_the_scratch_in_either_order() {
    needs!(Need::Root);
    let instance = super::instance();
    let fill = |file: u64, tmp: u64| {
        let limits = json!({ "file_bytes": file * MIB, "tmp_bytes": tmp * MIB });
        call(&instance, &["uses_memory", "tmp", "24"], limits)
    };
    let file = fill(4, 64);
    ends_by(&file, "signaled", &["file_bytes"]);
    assert_eq!(file.verdict, Verdict::Signaled { signal: "SIGXFSZ".to_owned() });
    ends_by(&fill(64, 4), "exited", &["tmp_bytes"]);
    ends_by(&fill(64, 64), "exited", &[]);
}

#[test]
fn the_number_of_files_and_the_size_of_the_scratch_in_either_order() {
    needs!(Need::Root);
    let instance = super::instance();
    let fill = |kind: &str, inodes: u64| {
        let limits = json!({ "tmp_inodes": inodes, "tmp_bytes": 4 * MIB });
        call(&instance, &["uses_memory", kind, "8"], limits)
    };
    let files = fill("files", 512);
    ends_by(&files, "exited", &["tmp_inodes"]);
    assert_eq!(printed(&files, "errno"), ENOSPC);
    ends_by(&fill("tmp", 512), "exited", &["tmp_bytes"]);
    ends_by(&fill("files", 16_384), "exited", &[]);
}

#[test]
fn processes_and_memory_in_either_order() {
    needs!(Need::Root);
    let instance = super::instance();
    let make = |pids: u64, memory: u64| {
        call(&instance, &["uses_pids", "forks", "600"], json!({ "pids": pids, "memory_bytes": memory * MIB }))
    };
    ends_by(&make(32, 256), "pids_limit", &["pids"]);
    // A process costs the kernel some 50 KiB: its stack, its tables, its descriptors.
    ends_by(&make(1024, 12), "memory_limit", &["memory_bytes"]);
    ends_by(&make(1024, 256), "exited", &[]);
}

#[test]
fn a_program_s_own_limit_of_processes_below_the_call_s_is_not_the_call_s() {
    needs!(Need::Root);
    let instance = super::instance();
    let make = |own: &str| {
        let line = format!("{own} exec /programs/uses_pids forks 40");
        let request = Request::shell(&line)
            .mount(&toolcell_tests::programs_dir().to_string_lossy(), toolcell_tests::PROGRAMS_INSIDE)
            .limits(roomy(json!({ "pids": 32 })));
        instance.call(&request)
    };
    // RLIMIT_NPROC of dash and busybox: the main process and three more.
    let own = make("ulimit -p 4;");
    ends_by(&own, "exited", &[]);
    assert_eq!((printed(&own, "made"), own.usage.forks_refused), (3, Some(0)), "{own:?}");
    ends_by(&make(""), "pids_limit", &["pids"]);
}

#[test]
fn output_and_wall_in_either_order() {
    needs!(Need::Root);
    let instance = super::instance();
    let limits = |output: u64, wall_ms: u64| json!({ "output_limit_bytes": output, "wall_ms": wall_ms });
    let floods = call(&instance, &["floods", "0"], limits(MIB, 60_000));
    ends_by(&floods, "output_limit", &["output_limit_bytes"]);
    let slow = Request::shell("while :; do echo line; sleep 0.05; done").limits(limits(MIB, 600));
    let slow = instance.call(&slow);
    ends_by(&slow, "wall_limit", &["wall_ms"]);
    assert!(slow.usage.stdout_bytes.unwrap() >= 5, "the control: it printed: {:?}", slow.usage);
}

#[test]
fn deadline_and_wall_in_either_order() {
    needs!(Need::Root);
    let instance = super::instance();
    let wait = |deadline_ms: u64, wall_ms: u64| {
        let request = Request::program("waits", &[]).limits(json!({ "wall_ms": wall_ms }));
        instance.call(&request.with("deadline_ms", json!(deadline_ms)))
    };
    ends_by(&wait(700, 60_000), "wall_limit", &["deadline_ms", "wall_ms"]);
    ends_by(&wait(60_000, 300), "wall_limit", &["wall_ms"]);
}

#[test]
fn descriptors_are_refused_one_by_one_and_end_nothing() {
    needs!(Need::Root);
    let instance = super::instance();
    let open = |open_files: u64| {
        let limits = json!({ "open_files": open_files, "memory_bytes": 64 * MIB, "pids": 4 });
        call(&instance, &["uses_memory", "pipes", "2"], limits)
    };
    let few = open(32);
    ends_by(&few, "exited", &[]);
    assert_eq!((&few.verdict, printed(&few, "errno")), (&Verdict::Exited { exit_code: 1 }, 24), "EMFILE");
    assert_eq!(printed(&few, "got"), (32 - 3) / 2 * 64 * 1024, "three descriptors are there, and each pipe has two");
    assert_eq!(open(256).verdict, Verdict::Exited { exit_code: 0 });
}
