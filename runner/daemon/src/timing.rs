//! How long each stage of a call took, as the reply's header `Server-Timing` tells it (W3C Server Timing): milliseconds,
//! in the order of the stages. Measured on CLOCK_MONOTONIC, from the moment at which the request's head was read.
//!
//! Does not: stand in any receipt. It tells about the runner, not about the tool.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;

use crate::clock::Clock;

/// The stages of one call so far.
#[derive(Debug)]
pub(crate) struct Stages {
    clock: Arc<dyn Clock>,
    last: Duration,
    laps: Vec<(&'static str, Duration)>,
}

impl Stages {
    /// The first stage began at `since`.
    pub(crate) fn since(clock: &Arc<dyn Clock>, since: Duration) -> Self {
        Self { clock: Arc::clone(clock), last: since, laps: Vec::with_capacity(8) }
    }

    /// The stage of this name is over, and the next one begins.
    pub(crate) fn over(&mut self, name: &'static str) {
        let now = self.clock.monotonic();
        self.laps.push((name, now.saturating_sub(self.last)));
        self.last = now;
    }

    /// The header's value; none before the first stage is over.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut value = String::new();
        for (name, took) in &self.laps {
            let comma = if value.is_empty() { "" } else { ", " };
            // Writing into a text cannot fail; a value without a stage would only lack it.
            if write!(value, "{comma}{name};dur={:.3}", took.as_secs_f64() * 1000.0).is_err() {
                return None;
            }
        }
        HeaderValue::try_from(value).ok().filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use toolcell_receipts::UnixMicros;

    use super::*;

    #[derive(Debug)]
    struct Still(Duration);

    impl Clock for Still {
        fn wall(&self) -> UnixMicros {
            UnixMicros(0)
        }

        fn monotonic(&self) -> Duration {
            self.0
        }

        fn since_boot(&self) -> Duration {
            self.0
        }
    }

    #[test]
    fn stages_are_told_in_their_order_in_milliseconds() {
        let clock: Arc<dyn Clock> = Arc::new(Still(Duration::from_micros(5_250)));
        let mut stages = Stages::since(&clock, Duration::from_micros(4_000));
        assert_eq!(stages.header(), None);
        stages.over("decode");
        stages.over("gate");
        assert_eq!(stages.header().unwrap(), "decode;dur=1.250, gate;dur=0.000");
    }
}
