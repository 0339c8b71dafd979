//! Which calls a run makes. Pure.

use std::collections::BTreeSet;

use toolcell_types::ControlId;

use super::matrix::{Key, Matrix};
use super::outcome::Outcome;
use super::probe::Probe;
use super::report::Asked;

/// One call of each probe with all controls.
pub(super) fn baseline(probes: &[Probe]) -> Vec<Key> {
    (0..probes.len()).map(|probe| Key::without(probe, &[])).collect()
}

/// All other calls, once the baseline is known: what this machine lacks cannot be switched off, and what has no program
/// is not run. In the order of the controls, so that progress can be told by them.
pub(super) fn others(asked: &Asked, probes: &[Probe], matrix: &Matrix) -> Vec<Key> {
    let unavailable = matrix.unavailable();
    let is_run = |probe: &usize| !matches!(matrix.baseline(*probe), Some(Outcome::NotRun { .. }) | None);
    let running: Vec<usize> = (0..probes.len()).filter(is_run).collect();
    let mut seen = BTreeSet::new();
    let mut keys = Vec::new();
    let mut add = |key: Key| {
        if !matrix.has(&key) && seen.insert(key.clone()) {
            keys.push(key);
        }
    };
    for control in asked.controls.iter().filter(|id| !unavailable.contains(id)) {
        running.iter().for_each(|probe| add(Key::without(*probe, &[*control])));
    }
    for pair in asked.pairs.iter().filter(|pair| !pair.iter().any(|id| unavailable.contains(id))) {
        running.iter().for_each(|probe| add(Key::without(*probe, pair)));
    }
    if asked.declared {
        for (probe, declared) in
            running.iter().filter_map(|index| Some((*index, declared(probes.get(*index)?, &unavailable))))
        {
            add(Key::without(probe, &declared));
            declared.iter().for_each(|control| add(Key::alone(probe, &declared, *control)));
        }
    }
    keys
}

/// What a probe declares, without what this machine lacks: that is off already.
pub(super) fn declared(probe: &Probe, unavailable: &[ControlId]) -> Vec<ControlId> {
    probe.stopped_by().iter().copied().filter(|id| !unavailable.contains(id)).collect()
}
