//! A run: the baseline first, then everything that was asked for, a few calls at once.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinSet;
use toolcell_client::Client;
use toolcell_receipts::verify::Mode;
use toolcell_types::ControlId;

use super::battery::Battery;
use super::call::Caller;
use super::error::AblationError;
use super::matrix::{Key, Matrix, Trial};
use super::outside::{Place, Secret};
use super::plan;
use super::probe::Probe;
use super::programs::Programs;
use super::report::{Asked, Machine, Report};
use super::tally;

/// What to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The toolcell binary, which processes outside of the cells are started from.
    pub binary: PathBuf,
    /// Where files outside of the cells are made: a folder that is no scratch of a cell, like /var/tmp.
    pub folder: PathBuf,
    /// A folder in which C programs lie compiled, by name; none has them compiled here.
    pub programs: Option<PathBuf>,
    /// The probes.
    pub battery: Battery,
    /// What is switched off.
    pub asked: Asked,
    /// Calls at once.
    pub in_flight: usize,
    /// The secret in the environment of the instance, if it was started with one.
    pub canary: Option<Secret>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Calls that are over.
    pub done: usize,
    /// Calls that are known to come, those included.
    pub all: usize,
    /// Whose call was over last.
    pub probe: &'a str,
    /// Controls that were off in it.
    pub off: &'a [ControlId],
}

/// Runs the battery against the instance behind `client`, and tells how far it is. Dropping it ends what runs and removes
/// what was made for it.
///
/// # Errors
/// [`AblationError`]: the first thing that keeps results from being believed.
pub async fn run(
    settings: &Settings,
    client: &Client,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Report, AblationError> {
    let failed = |source| AblationError::Client { source };
    let health = client.health().await.map_err(failed)?;
    if !health.ablation && !settings.asked.is_baseline() {
        return Err(AblationError::NotAblating);
    }
    let key = client.keys().await.map_err(failed)?.keys.into_iter().next().ok_or(AblationError::NoKey)?;
    let (battery, compiled) = (settings.battery.clone(), settings.programs.clone());
    // A compiler takes its time, and an interrupt is heard meanwhile.
    let programs = tokio::task::spawn_blocking(move || Programs::make(&battery, compiled.as_deref()));
    let caller = Arc::new(Caller {
        client: client.clone(),
        key: key.pem,
        mode: if health.ablation { Mode::Ablation } else { Mode::Production },
        accepted: health.accept_unavailable.clone(),
        canary: settings.canary.clone(),
        programs: programs.await.map_err(|source| AblationError::Task { source })??,
        place: Place { binary: settings.binary.clone(), folder: settings.folder.clone() },
    });
    let probes: Arc<[Probe]> = settings.battery.probes().into();
    let mut work = Work { caller, probes, matrix: Matrix::default(), done: 0, in_flight: settings.in_flight.max(1) };
    work.make(plan::baseline(&work.probes), tell).await?;
    let others = plan::others(&settings.asked, &work.probes, &work.matrix);
    work.make(others, tell).await?;
    let machine = Machine::of(&health);
    Ok(tally::report(machine, &settings.asked, &work.probes, &work.matrix))
}

struct Work {
    caller: Arc<Caller>,
    probes: Arc<[Probe]>,
    matrix: Matrix,
    done: usize,
    in_flight: usize,
}

impl Work {
    /// Makes these calls, a few at once.
    async fn make(&mut self, keys: Vec<Key>, tell: &mut dyn FnMut(Progress<'_>)) -> Result<(), AblationError> {
        let all = self.done.saturating_add(keys.len());
        let mut waiting = keys.into_iter();
        let mut running = JoinSet::new();
        loop {
            while running.len() < self.in_flight
                && let Some(key) = waiting.next()
            {
                let (caller, probes) = (Arc::clone(&self.caller), Arc::clone(&self.probes));
                let _abort = running.spawn(one(caller, probes, key));
            }
            let Some(ended) = running.join_next().await else { return Ok(()) };
            let (key, trial) = ended.map_err(|source| AblationError::Task { source })??;
            self.done = self.done.saturating_add(1);
            let probe = self.probes.get(key.probe).map_or("", Probe::id);
            tell(Progress { done: self.done, all, probe, off: &key.off });
            self.matrix.record(key, trial);
        }
    }
}

/// A call that broke down says nothing about a cell: it is made once more, and what breaks down twice is broken.
async fn one(caller: Arc<Caller>, probes: Arc<[Probe]>, key: Key) -> Result<(Key, Trial), AblationError> {
    match probes.get(key.probe) {
        Some(probe) => {
            let first = caller.call(probe, &key).await?;
            if !first.outcome.is_broken() {
                return Ok((key, first));
            }
            let second = caller.call(probe, &key).await?;
            Ok((key, Trial { left: first.left.or(second.left), ..second }))
        }
        None => Err(AblationError::Bystander { detail: format!("there is no probe {}", key.probe) }),
    }
}
