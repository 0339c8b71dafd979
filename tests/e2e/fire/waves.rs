//! A thousand calls in waves: what an instance holds is afterwards what it held before.

use toolcell_tests::{Instance, Need, Request, eventually, fresh_id, needs};
use toolcell_types::{Answer, Verdict};

use crate::kills::settled;

/// Side by side, so many times.
const WIDE: usize = 40;
const WAVES: usize = 25;

/// Ordinary calls without and with mounts, and some that leave much behind.
fn kinds() -> [Request; 5] {
    [
        Request::exec(&["true"]),
        // Folders that nobody may change, which has kept others from deleting them.
        Request::shell("echo out; echo err >&2; mkdir -p /tmp/a/b; mktemp -p /tmp/a/b; chmod 0500 /tmp/a/b /tmp/a"),
        Request::exec(&["true"]).mount(&toolcell_tests::programs_dir().to_string_lossy(), "/programs"),
        Request::program("leaves_children", &["daemon"]),
        Request::program("floods", &["100000"]),
    ]
}

fn answer(instance: &Instance, request: &Request) -> Answer {
    let response = eventually("a place in the queue", || {
        let response = instance.post(request);
        (response.status() != 503).then_some(response)
    });
    response.answer()
}

#[test]
fn a_thousand_calls_in_waves_leave_an_instance_as_it_was() {
    needs!(Need::Root);
    let (instance, before) = settled();
    let kinds = kinds();
    for _ in 0..WAVES {
        std::thread::scope(|scope| {
            for n in 0..WIDE {
                let request = kinds[n % kinds.len()].clone().id(&fresh_id());
                let instance = &instance;
                scope.spawn(move || {
                    let answer = answer(instance, &request);
                    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{:?}: {answer:?}", request.value());
                });
            }
        });
    }
    before.are_back(&instance);
    let entries = 1 + 2 * (1 + WAVES * WIDE);
    assert_eq!(instance.receipts().len(), entries, "the key, and an intent and an outcome of each call");
}
