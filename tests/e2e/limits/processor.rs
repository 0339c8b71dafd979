//! The processor's share: what the kernel guarantees of it, and that waiting for it is reported.

use serde_json::json;
use toolcell_tests::{Need, Request, needs};
use toolcell_types::Verdict;

use super::{hits, used_us, well};

/// Of a share the kernel hands out so much in each of these (cpu.cfs_period_us, cpu.max).
const PERIOD_US: u64 = 100_000;
/// What a processor may be late in taking back: a slice of the quota that it holds (sched_cfs_bandwidth_slice_us, 5 ms)
/// and the tick at which it notices (10 ms at 100 Hz), which on an emulated machine comes late itself.
const LATE_US: u64 = 50_000;

/// The most that a tree can have used of a share of so many thousandths, while so much time went by on the wall.
pub(super) fn most_us(cpu_millis: u64, wall_us: u64) -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |count| u64::try_from(count.get()).unwrap());
    let quota_us = cpu_millis * PERIOD_US / 1000;
    // One period that had begun, and one that has not ended.
    (wall_us / PERIOD_US + 2) * quota_us + processors * LATE_US
}

#[test]
fn a_share_bounds_what_the_tree_uses_and_a_larger_one_does_not() {
    needs!(Need::Root);
    let instance = super::instance();
    for processes in ["1", "3"] {
        let request = Request::program("burns", &["400", processes]);
        let burnt_us = 400_000 * processes.parse::<u64>().unwrap();
        let limits = json!({ "cpu_millis": 250, "wall_ms": 120_000, "cpu_ms": 60_000 });
        let slow = instance.call(&request.clone().limits(limits));
        well(&slow);
        let (used, wall) = (used_us(&slow), slow.usage.wall_us.unwrap());
        assert!(used >= burnt_us * 9 / 10, "the work was done: {used}");
        assert!(used <= most_us(250, wall), "{processes}: {used} µs within {wall} µs");
        // What follows from it, and what the same work does not need without: that it took its time.
        assert!(wall > 2 * burnt_us, "{processes}: {wall} µs");
    }
}

#[test]
fn waiting_for_the_share_is_reported_and_none_where_it_is_never_used_up() {
    needs!(Need::Root);
    let instance = super::instance();
    let burn = |cpu_millis: u64| {
        let limits = json!({ "cpu_millis": cpu_millis, "wall_ms": 120_000, "cpu_ms": 60_000 });
        let answer = instance.call(&Request::program("burns", &["200"]).limits(limits));
        well(&answer);
        answer.usage.throttled_us.expect("the kernel counts it")
    };
    let throttled = burn(50);
    assert!(throttled > 0, "a twentieth of a processor");
    // One thread cannot use four processors, however long it runs.
    assert_eq!(burn(4000), 0);
}

#[test]
fn a_tree_that_waits_for_its_share_still_ends_at_either_clock() {
    needs!(Need::Root);
    let instance = super::instance();
    let spin = |wall_ms: u64, cpu_ms: u64| {
        let limits = json!({ "cpu_millis": 100, "wall_ms": wall_ms, "cpu_ms": cpu_ms });
        instance.call(&Request::program("spins", &["4"]).limits(limits))
    };
    let by_wall = spin(1000, 60_000);
    assert_eq!((&by_wall.verdict, hits(&by_wall)), (&Verdict::WallLimit, vec!["wall_ms"]), "{by_wall:?}");
    assert!(used_us(&by_wall) <= most_us(100, by_wall.usage.wall_us.unwrap() + PERIOD_US), "{:?}", by_wall.usage);
    let by_cpu = spin(120_000, 200);
    assert_eq!((&by_cpu.verdict, hits(&by_cpu)), (&Verdict::CpuLimit, vec!["cpu_ms"]), "{by_cpu:?}");
    assert!(used_us(&by_cpu) >= 200_000, "{:?}", by_cpu.usage);
}
