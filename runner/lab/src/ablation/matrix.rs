//! All results by what they are results of. Pure.

use std::collections::{BTreeMap, BTreeSet};

use toolcell_types::ControlId;

use super::outcome::Outcome;

/// What a result is of: a probe, by its place in the battery, and the controls that were off.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) probe: usize,
    /// In the order of all reports; none is the baseline.
    pub(super) off: Vec<ControlId>,
}

impl Key {
    /// With these off.
    pub(super) fn without(probe: usize, off: &[ControlId]) -> Self {
        let off: BTreeSet<ControlId> = off.iter().copied().collect();
        Self { probe, off: off.into_iter().collect() }
    }

    /// With all of these off but one, which stands alone.
    pub(super) fn alone(probe: usize, declared: &[ControlId], standing: ControlId) -> Self {
        let others: Vec<ControlId> = declared.iter().copied().filter(|id| *id != standing).collect();
        Self::without(probe, &others)
    }
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) outcome: Outcome,
    /// Controls that were off though nobody asked for that: they fall with those that were.
    pub(super) fell: Vec<ControlId>,
    /// Controls that the machine lacks.
    pub(super) unavailable: Vec<ControlId>,
    /// A file that could not be removed.
    pub(super) left: Option<String>,
}

impl Trial {
    /// One of which nothing but the outcome is known.
    pub(super) fn of(outcome: Outcome) -> Self {
        Self { outcome, fell: Vec::new(), unavailable: Vec::new(), left: None }
    }
}

/// All results.
#[derive(Debug, Clone, Default)]
pub(super) struct Matrix {
    trials: BTreeMap<Key, Trial>,
}

impl Matrix {
    pub(super) fn record(&mut self, key: Key, trial: Trial) {
        let _earlier = self.trials.insert(key, trial);
    }

    pub(super) fn trial(&self, key: &Key) -> Option<&Trial> {
        self.trials.get(key)
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.trials.contains_key(key)
    }

    pub(super) fn trials(&self) -> impl Iterator<Item = (&Key, &Trial)> {
        self.trials.iter()
    }

    /// What came of a probe with all controls.
    pub(super) fn baseline(&self, probe: usize) -> Option<&Outcome> {
        self.trial(&Key::without(probe, &[])).map(|trial| &trial.outcome)
    }

    /// Controls that some call with all controls has reported as missing on this machine.
    pub(super) fn unavailable(&self) -> Vec<ControlId> {
        let baseline = self.trials.iter().filter(|(key, _)| key.off.is_empty());
        let all: BTreeSet<ControlId> = baseline.flat_map(|(_, trial)| trial.unavailable.iter().copied()).collect();
        all.into_iter().collect()
    }
}
