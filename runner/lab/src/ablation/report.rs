//! What a run found, as `toolcell ablate --json` prints it: members keep their names and every list its order.

use serde::Serialize;
use toolcell_types::{ControlId, Health};

use super::outcome::Outcome;
use super::probe::Language;
use super::words::{Class, Instrument, Kind, Witness};

/// What was asked to be switched off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Each of these by itself, for each probe.
    pub controls: Vec<ControlId>,
    /// Each of these together, for each probe.
    pub pairs: Vec<Vec<ControlId>>,
    /// For each probe the controls that it declares: all of them off, and each of them alone on.
    pub declared: bool,
}

impl Asked {
    /// Whether nothing is switched off.
    #[must_use]
    pub fn is_baseline(&self) -> bool {
        self.controls.is_empty() && self.pairs.is_empty() && !self.declared
    }
}

/// What the results are of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Version of toolcell.
    pub version: String,
    /// Release of the kernel.
    pub kernel: String,
    /// As uname(2) has it.
    pub architecture: String,
    /// Controls that the operator accepted as missing.
    pub accepted_unavailable: Vec<ControlId>,
}

impl Machine {
    pub(super) fn of(health: &Health) -> Self {
        let uname = rustix::system::uname();
        Self {
            version: health.version.clone(),
            kernel: uname.release().to_string_lossy().into_owned(),
            architecture: uname.machine().to_string_lossy().into_owned(),
            accepted_unavailable: health.accept_unavailable.clone(),
        }
    }
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What the results are of.
    pub machine: Machine,
    /// What was asked for.
    pub asked: Asked,
    /// Figures, and whether all is well.
    pub summary: Summary,
    /// Controls that this machine lacks.
    pub unavailable: Vec<ControlId>,
    /// One for each control that was switched off by itself, in the order of all reports.
    pub controls: Vec<ControlRow>,
    /// One for each combination, as asked.
    pub pairs: Vec<PairRow>,
    /// One for each probe, by class and by name.
    pub probes: Vec<ProbeRow>,
    /// Files that could not be removed from this machine.
    pub left: Vec<String>,
}

/// Figures. The first six are of the baseline and add up to `probes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How many there are.
    pub probes: usize,
    /// Stopped with all controls.
    pub stopped: usize,
    /// Got through with all controls.
    pub reached: usize,
    /// Got through, as this machine lacks each control that stops it, and the operator accepted that.
    pub open_as_accepted: usize,
    /// This kernel does not have what they try.
    pub not_applicable: usize,
    /// There was no program to run.
    pub not_run: usize,
    /// Broke down with all controls.
    pub broken: usize,
    /// All calls, the baseline among them.
    pub calls: usize,
    /// Calls of all these that broke down.
    pub broken_calls: usize,
    /// Calls for which the controls cannot be switched off in that way here.
    pub not_possible: usize,
    /// With `declared`: declarations that hold.
    pub declarations_hold: usize,
    /// With `declared`: declarations that do not.
    pub declarations_fail: usize,
    /// Nothing gets out of a cell with all controls, nothing broke down, every probe ran, and every declaration holds.
    pub good: bool,
}

/// A probe that got through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Through {
    /// Its name.
    pub probe: String,
    /// Its class.
    pub class: Class,
    /// What it reached.
    pub what: String,
    /// Controls that it declares and that were on all the same: they do not stop it without those that were off.
    pub beside: Vec<ControlId>,
}

/// What one control is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControlRow {
    /// Which.
    pub id: ControlId,
    /// What it is, in one line.
    pub purpose: &'static str,
    /// Attacks that get through when it alone is off, and do not with all controls. None: second lines hold.
    pub opens: Vec<Through>,
    /// Posture probes that show that it was off.
    pub shown_by: Vec<String>,
    /// Controls that fall with it.
    pub falls: Vec<ControlId>,
    /// Attacks that declare it.
    pub declared_by: usize,
    /// With `declared`: attacks that were tried with it alone on, all others that they declare being off, and that get
    /// through without it.
    pub tried_alone: Option<usize>,
    /// Of these, how many it stopped.
    pub stops_alone: Option<usize>,
    /// This machine lacks it: it was not switched off.
    pub is_unavailable: bool,
    /// Why it cannot be switched off here.
    pub not_possible: Option<String>,
    /// Probes that broke down without it.
    pub broken: Vec<Through>,
}

/// What several controls together are worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PairRow {
    /// Which.
    pub off: Vec<ControlId>,
    /// Attacks that get through when these are off, and do not with all controls.
    pub opens: Vec<Through>,
    /// Of these, what none of the controls opens by itself, where that was tried.
    pub opens_together: Vec<String>,
    /// Controls that fall with them.
    pub falls: Vec<ControlId>,
    /// Why they cannot be switched off here.
    pub not_possible: Option<String>,
}

/// One probe, what it declares, and what came of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProbeRow {
    /// Its name.
    pub id: String,
    /// Its class.
    pub class: Class,
    /// Attack or posture.
    pub kind: Kind,
    /// What it is written in.
    pub language: Language,
    /// The act, in one sentence.
    pub tries: String,
    /// The controls each of which stops it.
    pub stopped_by: Vec<ControlId>,
    /// What it is given.
    pub needs: Vec<Instrument>,
    /// Who has to have seen that it got through.
    pub witness: Vec<Witness>,
    /// Where it comes from.
    pub source: Option<String>,
    /// With all controls.
    pub baseline: Outcome,
    /// It got through with all controls, as this machine lacks each that stops it, and the operator accepted that.
    pub is_open_as_accepted: bool,
    /// With the controls and combinations that were asked for off.
    pub without: Vec<Without>,
    /// With `declared`.
    pub declared: Option<Declaration>,
}

/// What came of a probe without some controls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Without {
    /// Which.
    pub off: Vec<ControlId>,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How a declaration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Declared {
    /// With all of its controls off it gets through, and each of them alone stops it.
    Holds,
    /// It is not so.
    Fails,
    /// It cannot be tried here.
    NotPossible,
    /// This kernel does not have what the probe tries.
    NotApplicable,
}

/// Whether what a probe declares is so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Declaration {
    /// How it stands.
    pub state: Declared,
    /// With all declared controls off.
    pub all_off: Outcome,
    /// With each of them alone on.
    pub alone: Vec<Lonely>,
    /// What is not as declared, or cannot be tried.
    pub why: Option<String>,
}

/// What came of a probe with one of its declared controls on and the others off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lonely {
    /// The one that is on.
    pub on: ControlId,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}
