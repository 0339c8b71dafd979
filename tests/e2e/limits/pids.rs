//! What counts as a process: threads, children, those that nobody waits for, those that went away from their parents.

use serde_json::json;
use toolcell_tests::{Instance, Need, Request, needs};
use toolcell_types::{Answer, Verdict};

use super::{hit, printed, roomy, well};

const EAGAIN: u64 = 11;
const KINDS: [&str; 4] = ["forks", "threads", "zombies", "daemons"];
/// The cell's init and the main process.
const OWN: u64 = 2;

fn make(instance: &Instance, kind: &str, count: u64, pids: u64) -> Answer {
    let limits = roomy(json!({ "pids": pids }));
    instance.call(&Request::program("uses_pids", &[kind, &count.to_string()]).limits(limits))
}

/// Where the kernel has a peak (Linux 6.11 on).
fn peak_is(answer: &Answer, pids: u64) {
    if let Some(peak) = answer.usage.pids_peak {
        assert_eq!(peak, pids, "{:?}", answer.usage);
    }
}

#[test]
fn every_kind_of_process_counts_and_one_too_many_is_refused() {
    needs!(Need::Root);
    let instance = super::instance();
    for kind in KINDS {
        // A grandchild is made by one that has to be there meanwhile, so that one place stays free.
        let most = if kind == "daemons" { 13 } else { 14 };
        let refused = make(&instance, kind, 40, 14 + OWN);
        assert_eq!(refused.verdict, Verdict::PidsLimit, "{kind}: {refused:?}");
        assert_eq!((printed(&refused, "made"), printed(&refused, "errno")), (most, EAGAIN), "{kind}");
        assert!(hit(&refused, "pids") && refused.usage.forks_refused.unwrap() >= 1, "{kind}: {refused:?}");
        peak_is(&refused, 14 + OWN);

        let enough = make(&instance, kind, most, 14 + OWN);
        well(&enough);
        assert_eq!(printed(&enough, "made"), most, "{kind}: exactly as many as there is room for");
        peak_is(&enough, 14 + OWN);
    }
}

#[test]
fn two_is_the_least_and_leaves_room_for_the_main_process_alone() {
    needs!(Need::Root);
    let instance = super::instance();
    well(&make(&instance, "forks", 0, OWN));
    for kind in KINDS {
        let refused = make(&instance, kind, 1, OWN);
        assert_eq!((refused.verdict.cause(), printed(&refused, "made")), ("pids_limit", 0), "{kind}: {refused:?}");
    }
}

#[test]
fn a_refused_process_that_the_program_does_without_is_counted_and_no_cause() {
    needs!(Need::Root);
    let instance = super::instance();
    let line = "(/programs/uses_pids forks 40 > /dev/null); exit 0";
    let request = |pids: u64| {
        Request::shell(line)
            .mount(&toolcell_tests::programs_dir().to_string_lossy(), toolcell_tests::PROGRAMS_INSIDE)
            .limits(roomy(json!({ "pids": pids })))
    };
    let refused = instance.call(&request(16));
    assert_eq!(refused.verdict, Verdict::Exited { exit_code: 0 }, "{refused:?}");
    assert!(hit(&refused, "pids") && refused.usage.forks_refused.unwrap() >= 1, "{refused:?}");
    well(&instance.call(&request(64)));
}
