//! What counts as memory: every kind that a program can hold, each charged to its call and bounded by its limit.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use serde_json::{Value, json};
use toolcell_tests::{Instance, Need, Request, command, needs, program_on_host, run};
use toolcell_types::{Answer, Verdict};

use super::{ENOSPC, MIB, hit, hits, printed, roomy, well};

const ENOMEM: u64 = 12;

/// How much is taken, MiB.
const TAKEN: u64 = 24;
/// A limit that is far above it, and one that is below it.
const ENOUGH: u64 = 96 * MIB;
const TOO_LITTLE: u64 = 16 * MIB;

/// Kinds, and whether the kernel's own part beside the bytes is small: of sockets, pipes and files it is not.
const KINDS: [(&str, bool); 10] = [
    ("anon", true),
    ("shared", true),
    ("stack", true),
    ("memfd", true),
    ("tmp", true),
    ("shm", true),
    ("sysv", true),
    ("tables", true),
    ("pipes", false),
    ("sockets", false),
];

fn limits(memory_bytes: u64) -> Value {
    roomy(json!({ "memory_bytes": memory_bytes, "tmp_bytes": 64 * MIB, "open_files": 4096 }))
}

fn take(instance: &Instance, kind: &str, mib: u64, memory_bytes: u64) -> Answer {
    instance.call(&Request::program("uses_memory", &[kind, &mib.to_string()]).limits(limits(memory_bytes)))
}

#[test]
fn every_kind_of_memory_is_charged_to_the_call_by_what_was_taken() {
    needs!(Need::Root);
    let instance = super::instance();
    let mut wrong = Vec::new();
    for (kind, is_plain) in KINDS {
        let (nothing, much) = (take(&instance, kind, 0, ENOUGH), take(&instance, kind, TAKEN, ENOUGH));
        well(&nothing);
        well(&much);
        assert_eq!(printed(&much, "got"), TAKEN * MIB, "{kind}");
        let peak = |answer: &Answer| answer.usage.memory_peak_bytes.expect("this kernel has a peak");
        let more = peak(&much).saturating_sub(peak(&nothing));
        // Counters are charged in batches of up to 64 pages a processor, which may stand on either side.
        let least = (TAKEN - 2) * MIB;
        let most = if is_plain { (TAKEN + 2) * MIB } else { 4 * TAKEN * MIB };
        if !(least..=most).contains(&more) {
            wrong.push(format!("{kind}: {TAKEN} MiB taken, {more} bytes more than without"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_kind_of_memory_gets_past_the_limit() {
    needs!(Need::Root);
    let instance = super::instance();
    for (kind, _) in KINDS {
        let answer = take(&instance, kind, TAKEN, TOO_LITTLE);
        assert_eq!(answer.verdict, Verdict::MemoryLimit, "{kind}: {answer:?}");
        assert!(hit(&answer, "memory_bytes") && answer.usage.oom_kills.unwrap() >= 1, "{kind}: {answer:?}");
        let peak = answer.usage.memory_peak_bytes.unwrap();
        assert!((TOO_LITTLE / 2..=TOO_LITTLE).contains(&peak), "{kind}: {peak}");
        let message = answer.error.expect("a failure says why").message;
        assert!(message.contains(&TOO_LITTLE.to_string()), "{kind}: {message}");
    }
}

#[test]
fn empty_files_cost_memory_too() {
    needs!(Need::Root);
    let instance = super::instance();
    let take = |mib: &str, memory_bytes: u64| {
        let request = Request::program("uses_memory", &["files", mib]);
        let mut limits = limits(memory_bytes);
        limits["tmp_inodes"] = json!(200_000);
        instance.call(&request.limits(limits))
    };
    let (few, many) = (take("0", ENOUGH), take("60", ENOUGH));
    well(&few);
    well(&many);
    let more = many.usage.memory_peak_bytes.unwrap() - few.usage.memory_peak_bytes.unwrap();
    assert!(more > 60 * 256 * 512, "15360 files, {more} bytes");
    assert_eq!(take("600", TOO_LITTLE).verdict, Verdict::MemoryLimit);
}

#[test]
fn files_of_the_host_that_are_read_are_charged_and_given_back_before_anybody_is_killed() {
    needs!(Need::Root);
    let instance = super::instance();
    let dir = tempfile::tempdir_in(instance.home().dir()).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = dir.path().join("data");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&vec![b'd'; usize::try_from(TAKEN * MIB).unwrap()]).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let forget = || {
        file.sync_all().unwrap();
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
    };
    let host = dir.path().to_string_lossy().into_owned();
    let read = |mib: u64, memory_bytes: u64| {
        forget();
        let request = Request::program("uses_memory", &["cache", &mib.to_string(), "/data/data"]).mount(&host, "/data");
        instance.call(&request.limits(limits(memory_bytes)))
    };
    let (nothing, all, tight) = (read(0, ENOUGH), read(TAKEN, ENOUGH), read(TAKEN, TOO_LITTLE));
    for answer in [&nothing, &all, &tight] {
        well(answer);
    }
    let peak = |answer: &Answer| answer.usage.memory_peak_bytes.unwrap();
    let more = peak(&all) - peak(&nothing);
    assert!(more > (TAKEN - 4) * MIB, "it was read for the first time, by this call: {more}");
    assert!(peak(&tight) <= TOO_LITTLE, "{}", peak(&tight));
}

#[test]
fn locked_memory_has_a_limit_of_its_own() {
    needs!(Need::Root);
    let instance = super::instance();
    let answer = take(&instance, "locked", 4, ENOUGH);
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 1 }, "{answer:?}");
    assert_eq!((printed(&answer, "got"), printed(&answer, "errno")), (64 * 1024, ENOMEM));
    let outside = run(command(program_on_host("uses_memory")).args(["locked", "4"])).expect_code(0).text();
    assert_eq!(outside, format!("locked got {} errno 0\n", 4 * MIB), "the control");
}

#[test]
fn a_full_scratch_is_told_from_used_up_memory() {
    needs!(Need::Root);
    let instance = super::instance();
    for kind in ["tmp", "shm"] {
        let request = Request::program("uses_memory", &[kind, "8"]);
        let limits = json!({ "memory_bytes": ENOUGH, "tmp_bytes": 4 * MIB });
        let answer = instance.call(&request.limits(roomy(limits)));
        assert_eq!(answer.verdict, Verdict::Exited { exit_code: 1 }, "{kind}: {answer:?}");
        assert_eq!((printed(&answer, "errno"), answer.usage.oom_kills), (ENOSPC, Some(0)), "{kind}");
        assert_eq!(hits(&answer), ["tmp_bytes"], "{kind}");
        well(&take(&instance, kind, 8, ENOUGH));
    }
}
