//! Several at once: so many workers, each with the next as soon as its last is over.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use toolcell_client::Client;

use super::calls::{Called, Caller, Rules};
use super::figures::Sample;
use super::program::Program;
use super::ways::Other;
use super::{BenchError, Settings};

/// Most answers that are held until they are looked at, which is not to be measured.
const HELD_MAX: usize = 512;

/// What came of it.
#[derive(Debug)]
pub(super) struct Flown {
    pub(super) latency: Sample,
    pub(super) took: Duration,
}

impl Flown {
    pub(super) fn per_second(&self) -> f64 {
        let count = u32::try_from(self.latency.count()).map_or(f64::MAX, f64::from);
        count / self.took.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// At least `count` calls, `in_flight` at once.
pub(super) fn calls(
    (runtime, settings): (&Runtime, &Settings<'_>),
    client: &Client,
    (program, rules): (&Program, &Rules),
    (in_flight, count): (usize, usize),
) -> Result<Flown, BenchError> {
    let mut flown = Flown { latency: Sample::default(), took: Duration::ZERO };
    while flown.latency.count() < count {
        settings.go_on()?;
        let left = count.saturating_sub(flown.latency.count()).min(HELD_MAX);
        let began = Instant::now();
        let called = runtime.block_on(some_calls(client, (program, rules), (in_flight, left)))?;
        flown.took = flown.took.saturating_add(began.elapsed());
        for call in called {
            let (took, stages) = call.check(rules)?;
            flown.latency.add(took, &stages);
        }
    }
    Ok(flown)
}

async fn some_calls(
    client: &Client,
    (program, rules): (&Program, &Rules),
    (in_flight, count): (usize, usize),
) -> Result<Vec<Called>, BenchError> {
    let mut workers = JoinSet::new();
    for _worker in 0..in_flight {
        let mut caller = Caller::connect(client, program, rules).await?;
        let _abort = workers.spawn(async move {
            let mut called = Vec::new();
            for _call in 0..count.div_ceil(in_flight) {
                called.push(caller.call().await?);
            }
            Ok(called)
        });
    }
    let mut all = Vec::with_capacity(count);
    while let Some(worker) = workers.join_next().await {
        all.extend(worker.map_err(|source| BenchError::Task { source })??);
    }
    Ok(all)
}

/// Another way, as often.
pub(super) fn runs(other: &Other, in_flight: usize, count: usize) -> Result<Flown, BenchError> {
    let began = Instant::now();
    let samples = std::thread::scope(|scope| {
        let worker = || {
            let mut sample = Sample::default();
            for _run in 0..count.div_ceil(in_flight) {
                let began = Instant::now();
                other.run()?;
                sample.add(began.elapsed(), &[]);
            }
            Ok(sample)
        };
        let workers: Vec<_> = (0..in_flight).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(|worker| {
            let broken =
                |_panic| BenchError::Other { way: other.name().as_str(), detail: "its thread broke down".to_owned() };
            worker.join().map_err(broken)?
        });
        ended.collect::<Result<Vec<Sample>, BenchError>>()
    })?;
    let took = began.elapsed();
    let mut latency = Sample::default();
    for sample in samples {
        latency.join(sample);
    }
    Ok(Flown { latency, took })
}
