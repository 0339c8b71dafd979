//! What a comparison found, as `toolcell bench --json` prints it. Times are milliseconds, sizes bytes.

use serde::Serialize;

use super::figures::Sample;
use super::flight::Flown;

/// A way of running the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WayName {
    /// fork, exec and wait.
    Native,
    /// bubblewrap.
    Bwrap,
    /// `docker run`.
    Docker,
    /// A call to toolcell.
    Call,
}

impl WayName {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Bwrap => "bwrap",
            Self::Docker => "docker",
            Self::Call => "call",
        }
    }
}

/// How times are spread. Quantiles are nearest-rank: each is a time that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// How many.
    pub count: usize,
    /// The shortest.
    pub min_ms: f64,
    /// Half took no longer.
    pub median_ms: f64,
    /// 95 of 100 took no longer.
    pub p95_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
}

/// One way, one run after the other.
#[derive(Debug, Clone, Serialize)]
pub struct Way {
    /// Which.
    pub way: WayName,
    /// How long a run took.
    pub took: Spread,
    /// Its median by that of the program alone.
    pub ratio_to_native: f64,
    /// Its median by bubblewrap's, where that is installed.
    pub ratio_to_bwrap: Option<f64>,
}

/// One stage of a call, as the daemon measured it.
#[derive(Debug, Clone, Serialize)]
pub struct StageTime {
    /// Its name: decode, gate, plan, arm (build the cell and read it back), intent (sign, fsync), run (let go, to the end
    /// of the tree), outcome (sign, fsync).
    pub stage: String,
    /// How long it took.
    pub took: Spread,
}

/// Several at once.
#[derive(Debug, Clone, Serialize)]
pub struct Flight {
    /// How many at once.
    pub in_flight: usize,
    /// How long one call took.
    pub call: Spread,
    /// Calls that ended in a second.
    pub calls_per_second: f64,
    /// How long bubblewrap took, where it is installed.
    pub bwrap: Option<Spread>,
    /// Its runs that ended in a second.
    pub bwrap_per_second: Option<f64>,
}

impl Flight {
    pub(super) fn new(in_flight: usize, calls: &Flown, bwrap: Option<&Flown>) -> Option<Self> {
        Some(Self {
            in_flight,
            call: calls.latency.spread()?,
            calls_per_second: calls.per_second(),
            bwrap: bwrap.and_then(|bwrap| bwrap.latency.spread()),
            bwrap_per_second: bwrap.map(Flown::per_second),
        })
    }
}

/// One process of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pss {
    /// Which part it is.
    pub process: String,
    /// Its proportional set size; none where the kernel does not show it to this user.
    pub bytes: Option<u64>,
}

/// What the instance holds.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    /// After its start and one call.
    pub idle: Vec<Pss>,
    /// All of them; none unless each is known.
    pub idle_bytes: Option<u64>,
    /// How many calls were made before the second look, those of the comparison not counted.
    pub calls: usize,
    /// After these.
    pub after: Vec<Pss>,
    /// All of them.
    pub after_bytes: Option<u64>,
}

impl Memory {
    pub(super) fn new(idle: Vec<Pss>, after: Vec<Pss>, calls: usize) -> Self {
        let sum = |of: &[Pss]| of.iter().try_fold(0_u64, |sum, one| sum.checked_add(one.bytes?));
        Self { idle_bytes: sum(&idle), after_bytes: sum(&after), idle, calls, after }
    }
}

/// The machine.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// As uname(2) has it.
    pub architecture: String,
    /// Its model, where the kernel names one.
    pub processor: Option<String>,
    /// How many there are for us.
    pub processors: usize,
    /// All memory.
    pub memory_bytes: Option<u64>,
    /// Processes that wanted a processor in the minute before: above some tenths, the figures are those of a busy machine.
    pub load: Option<f64>,
    /// Of the state.
    pub file_system: Option<String>,
    /// Version, where installed.
    pub bwrap: Option<String>,
    /// Version of the engine, where one answers.
    pub docker: Option<String>,
}

/// Everything.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What the figures are of.
    pub machine: Machine,
    /// Controls that were accepted as missing: then a call is less than what is promised elsewhere.
    pub accepted_unavailable: Vec<toolcell_types::ControlId>,
    /// One after the other, in turns.
    pub ways: Vec<Way>,
    /// Where a call's time goes.
    pub stages: Vec<StageTime>,
    /// Several at once.
    pub flights: Vec<Flight>,
    /// What the instance holds.
    pub memory: Memory,
}

/// The ways with their ratios.
pub(super) fn ways(samples: &[(WayName, &Sample)]) -> Vec<Way> {
    let spreads: Vec<(WayName, Spread)> =
        samples.iter().filter_map(|(way, sample)| Some((*way, sample.spread()?))).collect();
    let median = |of: WayName| spreads.iter().find(|(way, _)| *way == of).map(|(_, took)| took.median_ms);
    let (native, bwrap) = (median(WayName::Native), median(WayName::Bwrap));
    let way = |(way, took): &(WayName, Spread)| {
        let by = |other: Option<f64>| other.map(|other| took.median_ms / other);
        Some(Way { way: *way, took: *took, ratio_to_native: by(native)?, ratio_to_bwrap: by(bwrap) })
    };
    spreads.iter().filter_map(way).collect()
}
