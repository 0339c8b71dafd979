//! From all results to the report. Pure.

use std::collections::BTreeSet;

use toolcell_types::ControlId;

use super::matrix::{Key, Matrix};
use super::outcome::Outcome;
use super::plan;
use super::probe::Probe;
use super::report::{
    Asked, ControlRow, Declaration, Declared, Lonely, Machine, PairRow, ProbeRow, Report, Summary, Through, Without,
};
use super::words::Kind;

/// Works the report out.
pub(super) fn report(machine: Machine, asked: &Asked, probes: &[Probe], matrix: &Matrix) -> Report {
    let tally = Tally { asked, probes, matrix, unavailable: matrix.unavailable() };
    let rows: Vec<ProbeRow> =
        probes.iter().enumerate().filter_map(|(index, probe)| tally.probe(index, probe, &machine)).collect();
    let left = matrix.trials().filter_map(|(_, trial)| trial.left.clone());
    Report {
        summary: tally.summary(&rows),
        controls: asked.controls.iter().map(|id| tally.control(*id, &rows)).collect(),
        pairs: asked.pairs.iter().map(|pair| tally.pair(pair)).collect(),
        probes: rows,
        left: left.collect(),
        asked: asked.clone(),
        unavailable: tally.unavailable,
        machine,
    }
}

struct Tally<'a> {
    asked: &'a Asked,
    probes: &'a [Probe],
    matrix: &'a Matrix,
    unavailable: Vec<ControlId>,
}

impl Tally<'_> {
    fn outcome(&self, key: &Key) -> Option<&Outcome> {
        self.matrix.trial(key).map(|trial| &trial.outcome)
    }

    /// Every probe of this kind that, without `off`, came to what `is` picks; with what it came to.
    fn through(&self, kind: Option<Kind>, off: &[ControlId], is: impl Fn(usize, &Outcome) -> bool) -> Vec<Through> {
        let probes = self.probes.iter().enumerate().filter(|(_, probe)| kind.is_none_or(|kind| probe.kind() == kind));
        let through = probes.filter_map(|(index, probe)| {
            let trial = self.matrix.trial(&Key::without(index, off)).filter(|trial| is(index, &trial.outcome))?;
            let is_on =
                |id: &ControlId| !off.contains(id) && !trial.fell.contains(id) && !trial.unavailable.contains(id);
            Some(Through {
                probe: probe.id().to_owned(),
                class: probe.class(),
                what: trial.outcome.words().to_owned(),
                beside: probe.stopped_by().iter().copied().filter(is_on).collect(),
            })
        });
        through.collect()
    }

    /// Attacks that get through without `off`, and do not with all controls.
    fn opened(&self, kind: Kind, off: &[ControlId]) -> Vec<Through> {
        let is_open = |index: usize| self.matrix.baseline(index).is_some_and(Outcome::is_reached);
        self.through(Some(kind), off, |index, outcome| outcome.is_reached() && !is_open(index))
    }

    fn falls(&self, off: &[ControlId]) -> Vec<ControlId> {
        let trials = self.matrix.trials().filter(|(key, _)| key.off == off);
        let all: BTreeSet<ControlId> = trials.flat_map(|(_, trial)| trial.fell.iter().copied()).collect();
        all.into_iter().collect()
    }

    /// The reason, if no call at all was possible without these.
    fn not_possible(&self, off: &[ControlId]) -> Option<String> {
        let mut trials = self.matrix.trials().filter(|(key, _)| key.off == off).map(|(_, trial)| &trial.outcome);
        let first = trials.next()?.not_possible()?;
        trials.all(|outcome| outcome.not_possible().is_some()).then(|| first.to_owned())
    }

    fn control(&self, id: ControlId, rows: &[ProbeRow]) -> ControlRow {
        let off = [id];
        let attacks = || rows.iter().filter(|row| row.kind == Kind::Attack);
        let alone = || {
            let declared = attacks().filter_map(|row| row.declared.as_ref());
            let tried = declared.filter(|declared| declared.all_off.is_reached()).flat_map(|declared| &declared.alone);
            tried.filter(|lonely| lonely.on == id && lonely.outcome.not_possible().is_none())
        };
        let stops_alone = || alone().filter(|lonely| lonely.outcome.is_stopped()).count();
        ControlRow {
            id,
            purpose: id.purpose(),
            opens: self.opened(Kind::Attack, &off),
            shown_by: self.opened(Kind::Posture, &off).into_iter().map(|through| through.probe).collect(),
            falls: self.falls(&off),
            declared_by: attacks().filter(|row| row.stopped_by.contains(&id)).count(),
            tried_alone: self.asked.declared.then(|| alone().count()),
            stops_alone: self.asked.declared.then(stops_alone),
            is_unavailable: self.unavailable.contains(&id),
            not_possible: self.not_possible(&off),
            broken: self.through(None, &off, |_, outcome| outcome.is_broken()),
        }
    }

    fn pair(&self, pair: &[ControlId]) -> PairRow {
        let off = Key::without(0, pair).off;
        let opens = self.opened(Kind::Attack, &off);
        let by_itself: BTreeSet<String> =
            off.iter().flat_map(|id| self.opened(Kind::Attack, &[*id])).map(|through| through.probe).collect();
        let were_tried = off.iter().all(|id| self.asked.controls.contains(id));
        let together =
            opens.iter().map(|through| &through.probe).filter(|probe| were_tried && !by_itself.contains(*probe));
        PairRow {
            opens_together: together.cloned().collect(),
            opens,
            falls: self.falls(&off),
            not_possible: self.not_possible(&off),
            off,
        }
    }

    fn probe(&self, index: usize, probe: &Probe, machine: &Machine) -> Option<ProbeRow> {
        let baseline = self.matrix.baseline(index)?.clone();
        let singles = self.asked.controls.iter().map(|id| vec![*id]);
        let without = singles.chain(self.asked.pairs.iter().cloned()).filter_map(|off| {
            let key = Key::without(index, &off);
            let outcome = self.outcome(&key)?.clone();
            Some(Without { off: key.off, outcome })
        });
        let is_accepted = |id: &ControlId| {
            self.unavailable.contains(id) && (machine.accepted_unavailable.contains(id) || !id.is_required_by_default())
        };
        Some(ProbeRow {
            id: probe.id().to_owned(),
            class: probe.class(),
            kind: probe.kind(),
            language: probe.language(),
            tries: probe.tries().to_owned(),
            stopped_by: probe.stopped_by().to_vec(),
            needs: probe.needs().to_vec(),
            witness: probe.witness().to_vec(),
            source: probe.source().map(str::to_owned),
            is_open_as_accepted: baseline.is_reached() && probe.stopped_by().iter().all(is_accepted),
            without: without.collect(),
            declared: self.asked.declared.then(|| self.declaration(index, probe, &baseline)).flatten(),
            baseline,
        })
    }

    fn declaration(&self, index: usize, probe: &Probe, baseline: &Outcome) -> Option<Declaration> {
        let declared = plan::declared(probe, &self.unavailable);
        let all_off = self.outcome(&Key::without(index, &declared))?.clone();
        let alone = declared.iter().filter_map(|id| {
            let trial = self.matrix.trial(&Key::alone(index, &declared, *id))?;
            // What falls with the others says nothing about itself.
            let fell = || Outcome::NotPossible { why: format!("{id} does not stand without the others") };
            Some(Lonely { on: *id, outcome: if trial.fell.contains(id) { fell() } else { trial.outcome.clone() } })
        });
        let alone: Vec<Lonely> = alone.collect();
        let (state, why) = judge(baseline, &all_off, &alone);
        Some(Declaration { state, all_off, alone, why })
    }

    fn summary(&self, rows: &[ProbeRow]) -> Summary {
        let baseline = |is: fn(&Outcome) -> bool| rows.iter().filter(|row| is(&row.baseline)).count();
        let calls = |is: fn(&Outcome) -> bool| self.matrix.trials().filter(|(_, trial)| is(&trial.outcome)).count();
        let declared = |state: Declared| {
            rows.iter().filter(|row| row.declared.as_ref().is_some_and(|declared| declared.state == state)).count()
        };
        let open_as_accepted = rows.iter().filter(|row| row.is_open_as_accepted).count();
        let summary = Summary {
            probes: rows.len(),
            stopped: baseline(Outcome::is_stopped),
            reached: baseline(Outcome::is_reached).saturating_sub(open_as_accepted),
            open_as_accepted,
            not_applicable: baseline(|outcome| matches!(outcome, Outcome::NotApplicable { .. })),
            not_run: baseline(|outcome| matches!(outcome, Outcome::NotRun { .. })),
            broken: baseline(|outcome| matches!(outcome, Outcome::Broken { .. } | Outcome::NotPossible { .. })),
            calls: calls(|outcome| !matches!(outcome, Outcome::NotRun { .. })),
            broken_calls: calls(Outcome::is_broken),
            not_possible: calls(|outcome| matches!(outcome, Outcome::NotPossible { .. })),
            declarations_hold: declared(Declared::Holds),
            declarations_fail: declared(Declared::Fails),
            good: false,
        };
        let bad = summary.reached + summary.not_run + summary.broken + summary.broken_calls + summary.declarations_fail;
        Summary { good: bad == 0, ..summary }
    }
}

/// How a declaration stands, and what is not as it says.
fn judge(baseline: &Outcome, all_off: &Outcome, alone: &[Lonely]) -> (Declared, Option<String>) {
    let is_absent = matches!(baseline, Outcome::NotApplicable { .. });
    match all_off {
        // With a filter off it is the kernel itself that says so; before, the filter may have stopped it.
        Outcome::NotApplicable { .. } => return (Declared::NotApplicable, None),
        Outcome::NotPossible { why } => return (Declared::NotPossible, Some(why.clone())),
        Outcome::Reached { .. } if !is_absent => {}
        Outcome::Reached { .. } | Outcome::Stopped { .. } | Outcome::NotRun { .. } | Outcome::Broken { .. } => {
            let first = if is_absent {
                "not applicable with all controls, and without those it declares"
            } else {
                "without all it declares"
            };
            return (Declared::Fails, Some(format!("{first}: {}", told(all_off))));
        }
    }
    let wrong =
        alone.iter().find(|lonely| !matches!(lonely.outcome, Outcome::Stopped { .. } | Outcome::NotPossible { .. }));
    if let Some(Lonely { on, outcome }) = wrong {
        return (Declared::Fails, Some(format!("with {on} alone: {}", told(outcome))));
    }
    let untried = alone.iter().filter(|lonely| !lonely.outcome.is_stopped()).map(|lonely| lonely.on.as_str());
    let untried: Vec<&str> = untried.collect();
    let why = (!untried.is_empty()).then(|| format!("cannot be tried alone: {}", untried.join(", ")));
    (Declared::Holds, why)
}

fn told(outcome: &Outcome) -> String {
    format!("{}, {}", outcome.word().replace('_', " "), outcome.words())
}

#[cfg(test)]
mod tests;
