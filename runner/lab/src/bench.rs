//! What a call costs, beside what the same program costs by itself, in bubblewrap and in Docker: one run, the ways taking
//! turns, so that a busy moment of the machine meets all of them.
//!
//! The program is one and the same static binary that does nothing. A call is cold: a cell is built for it, with all
//! controls, and its intent and its outcome are signed and durable before the answer. Ratios are what to compare between
//! machines; milliseconds are of the machine at hand.

mod calls;
mod error;
mod figures;
mod flight;
mod instance;
mod machine;
mod memory;
mod program;
mod report;
mod ways;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::runtime::Runtime;
use toolcell_types::ControlId;

use self::calls::{Caller, Rules};
pub use self::error::BenchError;
use self::figures::Sample;
use self::instance::Instance;
use self::program::Program;
pub use self::report::{Flight, Machine, Memory, Pss, Report, Spread, StageTime, Way, WayName};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Settings<'a> {
    /// Set when somebody asks for the end: it is then looked at between two calls, and everything is cleaned up.
    pub is_interrupted: &'a AtomicBool,
    /// The toolcell binary, which the instance is started from.
    pub binary: PathBuf,
    /// Where a folder is made for program, socket and state; on the file system whose fsync(2) is to be measured.
    pub parent: PathBuf,
    /// Rounds of the sequential comparison. Each way runs once per round, Docker in the first [`DOCKER_ROUNDS`].
    pub rounds: usize,
    /// Calls after which memory is looked at again.
    pub memory_calls: usize,
    /// Controls that may be missing on this machine.
    pub accept_unavailable: Vec<ControlId>,
}

impl Settings<'_> {
    fn go_on(&self) -> Result<(), BenchError> {
        if self.is_interrupted.load(Ordering::Relaxed) { Err(BenchError::Interrupted) } else { Ok(()) }
    }
}

/// Most rounds of `docker run`: it takes a good part of a second each.
pub const DOCKER_ROUNDS: usize = 20;
/// Rounds before anything is measured.
const WARM_UP: usize = 5;
/// How many calls are in flight at once, one after the other.
const FLIGHTS: [usize; 3] = [2, 8, 16];
/// The same for the calls before memory is looked at again.
const MEMORY_FLIGHT: usize = 8;

/// Measures everything. `progress` is told what begins.
///
/// # Errors
/// [`BenchError`]: the instance did not start, or something that was measured did not do what it should.
pub fn run(settings: &Settings<'_>, progress: &mut dyn FnMut(&str)) -> Result<Report, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| BenchError::System { doing: "start a runtime", source })?;
    let parent = settings.parent.canonicalize();
    let parent = parent.map_err(|source| BenchError::File { path: settings.parent.clone(), source })?;
    let program = Program::make(&parent)?;
    let others = ways::others(&program)?;
    let machine = machine::describe(program.folder(), &others)?;
    progress("starting an instance of its own");
    let mut instance = Instance::start(&settings.binary, program.folder(), &settings.accept_unavailable)?;
    let client = instance.client();
    let key = runtime.block_on(calls::key(&client)).map_err(|error| instance.reason(error))?;
    let rules = Rules { key, accepted: settings.accept_unavailable.clone() };
    let mut caller = runtime.block_on(Caller::connect(&client, &program, &rules))?;
    // With its first call over, all parts are what they stay.
    let (_took, _stages) = runtime.block_on(caller.call())?.check(caller.rules())?;
    let idle = memory::look(instance.pid())?;

    progress(&format!("{} rounds, one after the other", settings.rounds));
    let (calls, samples) = turns(&runtime, &mut caller, &others, settings)?;

    let mut flights = Vec::new();
    for in_flight in FLIGHTS {
        progress(&format!("{in_flight} in flight"));
        let count = settings.rounds.max(in_flight);
        let flown = flight::calls((&runtime, settings), &client, (&program, &rules), (in_flight, count))?;
        let bwrap = others.iter().find(|other| other.name() == WayName::Bwrap);
        let bwrap = bwrap.map(|bwrap| flight::runs(bwrap, in_flight, count)).transpose()?;
        flights.extend(Flight::new(in_flight, &flown, bwrap.as_ref()));
    }

    progress(&format!("{} calls, for memory", settings.memory_calls));
    let many = (MEMORY_FLIGHT, settings.memory_calls);
    let flown = flight::calls((&runtime, settings), &client, (&program, &rules), many)?;
    let memory = Memory::new(idle, memory::look(instance.pid())?, flown.latency.count());
    instance.stop()?;
    let names = others.iter().map(ways::Other::name).zip(&samples);
    let all: Vec<(WayName, &Sample)> = names.chain([(WayName::Call, &calls)]).collect();
    Ok(Report {
        machine,
        accepted_unavailable: settings.accept_unavailable.clone(),
        ways: report::ways(&all),
        stages: calls.stages(),
        flights,
        memory,
    })
}

/// All ways in turns: the calls, and the others in their order.
fn turns(
    runtime: &Runtime,
    caller: &mut Caller,
    others: &[ways::Other],
    settings: &Settings<'_>,
) -> Result<(Sample, Vec<Sample>), BenchError> {
    let mut calls = Sample::default();
    let mut samples: Vec<Sample> = others.iter().map(|_| Sample::default()).collect();
    for round in 0..WARM_UP.saturating_add(settings.rounds) {
        settings.go_on()?;
        let is_measured = round >= WARM_UP;
        let called = runtime.block_on(caller.call())?;
        let (took, stages) = called.check(caller.rules())?;
        if is_measured {
            calls.add(took, &stages);
        }
        for (other, sample) in others.iter().zip(&mut samples) {
            if other.is_slow() && round >= WARM_UP.saturating_add(DOCKER_ROUNDS) {
                continue;
            }
            let began = Instant::now();
            other.run()?;
            if is_measured {
                sample.add(began.elapsed(), &[]);
            }
        }
    }
    Ok((calls, samples))
}
