//! Times, and what is said of them.

use std::time::Duration;

use toolcell_client::Stage;

use super::report::{Spread, StageTime};

/// Times of one way.
#[derive(Debug, Default)]
pub(super) struct Sample {
    took: Vec<Duration>,
    /// By name, in the order in which they came first.
    stages: Vec<(String, Vec<f64>)>,
}

impl Sample {
    pub(super) fn add(&mut self, took: Duration, stages: &[Stage]) {
        self.took.push(took);
        for Stage { name, ms } in stages {
            match self.stages.iter_mut().find(|(known, _)| known == name) {
                Some((_, times)) => times.push(*ms),
                None => self.stages.push((name.clone(), vec![*ms])),
            }
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        self.took.extend(other.took);
    }

    pub(super) fn count(&self) -> usize {
        self.took.len()
    }

    /// None of nothing.
    pub(super) fn spread(&self) -> Option<Spread> {
        spread(self.took.iter().map(|took| took.as_secs_f64() * 1000.0).collect())
    }

    pub(super) fn stages(&self) -> Vec<StageTime> {
        let stage =
            |(name, times): &(String, Vec<f64>)| Some(StageTime { stage: name.clone(), took: spread(times.clone())? });
        self.stages.iter().filter_map(stage).collect()
    }
}

fn spread(mut times: Vec<f64>) -> Option<Spread> {
    times.sort_by(f64::total_cmp);
    let (min_ms, median_ms) = (*times.first()?, quantile(&times, 50)?);
    Some(Spread { count: times.len(), min_ms, median_ms, p95_ms: quantile(&times, 95)?, p99_ms: quantile(&times, 99)? })
}

/// The nearest-rank quantile: the smallest time that at least so many of a hundred do not exceed.
fn quantile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = sorted.len().saturating_mul(percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let mut sample = Sample::default();
        for ms in (1..=100).rev() {
            sample.add(Duration::from_millis(ms), &[]);
        }
        let spread = sample.spread().unwrap();
        assert_eq!((spread.count, spread.min_ms, spread.median_ms), (100, 1.0, 50.0));
        assert_eq!((spread.p95_ms, spread.p99_ms), (95.0, 99.0));
        assert_eq!(quantile(&[7.0], 99), Some(7.0));
        assert_eq!(Sample::default().spread(), None);
    }

    #[test]
    fn stages_keep_their_order() {
        let stage = |name: &str, ms| Stage { name: name.to_owned(), ms };
        let mut sample = Sample::default();
        sample.add(Duration::ZERO, &[stage("gate", 1.0), stage("arm", 3.0)]);
        sample.add(Duration::ZERO, &[stage("gate", 2.0), stage("arm", 4.0)]);
        let stages = sample.stages();
        assert_eq!((stages[0].stage.as_str(), stages[1].stage.as_str()), ("gate", "arm"));
        assert_eq!((stages[0].took.min_ms, stages[1].took.count), (1.0, 2));
    }
}
