//! Every limit: that it has effect, what it counts, that it is its call's own, and which of several is the one that is
//! named. The witnesses are the kernel's counters as reports have them; each program is also run with enough, and then
//! ends well.

mod memory;
mod nested;
mod oom;
mod own;
mod pids;
mod processor;
mod read_back;
mod values;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;
use toolcell_tests::Instance;
use toolcell_types::{Answer, Verdict};

const MIB: u64 = 1 << 20;
const ENOSPC: u64 = 28;

/// An instance, which tests that run in one process at the same time share: on an emulated machine a start takes longer
/// than what is tried. It ends with the last of them.
fn instance() -> Arc<Instance> {
    static SHARED: Mutex<Weak<Instance>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let fresh = Arc::new(Instance::start());
        *shared = Arc::downgrade(&fresh);
        fresh
    })
}

/// Whether that limit is among those that were reached.
fn hit(answer: &Answer, limit: &str) -> bool {
    answer.limits_hit.iter().any(|hit| hit.limit == limit && !hit.seen.is_empty())
}

/// The limits that were reached, in the order of their names.
fn hits(answer: &Answer) -> Vec<&str> {
    let mut names: Vec<&str> = answer.limits_hit.iter().map(|hit| hit.limit.as_str()).collect();
    names.sort_unstable();
    names
}

/// With time enough for an emulated machine, unless it is about time.
fn roomy(mut limits: Value) -> Value {
    for name in ["wall_ms", "cpu_ms"] {
        if limits[name].is_null() {
            limits[name] = 120_000.into();
        }
    }
    limits
}

fn text(answer: &Answer) -> String {
    serde_json::to_value(&answer.stdout).unwrap().as_str().unwrap().to_owned()
}

/// The number behind a word of what was printed, as in `errno 12`.
fn printed(answer: &Answer, word: &str) -> u64 {
    let text = text(answer);
    let mut words = text.split_whitespace().skip_while(|seen| *seen != word).skip(1);
    words.next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {word} in {text:?}: {answer:?}"))
}

/// It ended well, and no limit was in the way.
fn well(answer: &Answer) {
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{answer:?}");
    assert_eq!((answer.usage.oom_kills, answer.usage.forks_refused), (Some(0), Some(0)), "{:?}", answer.usage);
    assert!(answer.limits_hit.is_empty(), "{:?}", answer.limits_hit);
}

/// Processor time of the tree, microseconds.
fn used_us(answer: &Answer) -> u64 {
    answer.usage.cpu_user_us.unwrap() + answer.usage.cpu_system_us.unwrap()
}

/// What a control is reported to hold.
fn observed(answer: &Answer, control: &str) -> Value {
    answer.controls.iter().find(|item| item["id"] == control).expect("every control is reported")["observed"].clone()
}
