//! Waiting for an event, with a deadline. Nothing in the suite sleeps for a fixed time and hopes.

use std::time::{Duration, Instant};

/// How long any single thing may take on a busy machine before the test fails.
pub const DEADLINE: Duration = Duration::from_secs(20);

const STEP: Duration = Duration::from_millis(3);

/// Looks until `look` sees something.
///
/// # Panics
/// After [`DEADLINE`], saying what was waited for.
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, what, look)
}

/// Looks until `look` sees something.
///
/// # Panics
/// After `limit`, saying what was waited for.
pub fn within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "waited {limit:?} in vain for: {what}");
        std::thread::sleep(STEP);
    }
}
