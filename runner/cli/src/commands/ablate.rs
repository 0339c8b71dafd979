//! `toolcell ablate`: what each control is worth, shown by probes that get through without it.

use std::path::{Path, PathBuf};

use toolcell_client::Client;
use toolcell_lab::ablation::outside::{CANARY_VARIABLE, Secret};
use toolcell_lab::ablation::{self, AblationError, Asked, Battery, BatteryError, Report, Settings};

use super::trial::{self, Order, Refusal, Tried, unless_interrupted};
use crate::args::{AblateArgs, ServeArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render;
use crate::serve::Place;

/// How long a trial outlives a killed `ablate`; compilers take their time between its start and the first call.
const IDLE_EXIT_S: u32 = 300;
/// Calls at once where nobody says how many.
const AT_ONCE: usize = 3;
/// Where files outside of the cells are made: it is no scratch of a cell, of which Landlock would let more be done.
const OUTSIDE: &str = "/var/tmp";

/// Runs the battery and prints what it found. Exit 0 only if nothing gets out with all controls, every probe ran, and
/// every declaration that was asked about holds.
pub(crate) fn ablate(args: &AblateArgs) -> Result<Exit, Failure> {
    let battery = battery(args).map_err(|error| {
        let (remedy, exit) = (error.remedy(), Exit::Usage);
        Failure::new(exit, error, remedy)
    })?;
    if args.list {
        list(args, &battery)?;
        return Ok(Exit::Ok);
    }
    args.html.as_deref().map_or(Ok(()), has_folder)?;
    let settings = Settings {
        programs: args.programs.clone(),
        asked: asked(args),
        in_flight: usize::from(args.at_once),
        ..with_all_on(battery)?
    };
    let report = match &args.instance.socket {
        Some(socket) => with_running(&settings, &Client::new(socket))?,
        None => with_trial(&args.instance.serve(), &settings)?,
    };
    if let Some(path) = &args.html {
        let written = std::fs::write(path, render::page(&report));
        let failed = |error| anyhow::Error::new(error).context(format!("cannot write {}", path.display()));
        written.map_err(|error| Failure::plain(Exit::Failed, failed(error)))?;
    }
    if args.json {
        render::value(&report)?;
    } else {
        render::out(render::ablate(&report).as_bytes())?;
    }
    Ok(if report.summary.good { Exit::Ok } else { Exit::Failed })
}

/// A page that cannot be written is told before minutes of work.
fn has_folder(page: &Path) -> Result<(), Failure> {
    let folder = page.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() && !page.is_dir() {
        return Ok(());
    }
    let error = anyhow::anyhow!("cannot write {}", page.display());
    Err(Failure::new(Exit::Usage, error, "name a file in a folder that is there: --html FILE"))
}

fn battery(args: &AblateArgs) -> Result<Battery, BatteryError> {
    let all = args.probes_dir.as_deref().map_or_else(Battery::embedded, Battery::of_folder)?;
    all.matching(args.probes.as_ref())
}

fn list(args: &AblateArgs, battery: &Battery) -> Result<(), Failure> {
    if args.json {
        return render::value(battery);
    }
    render::out(render::probes(battery).as_bytes())
}

fn asked(args: &AblateArgs) -> Asked {
    Asked {
        controls: args.controls.0.clone(),
        pairs: args.pairs.iter().map(|set| set.0.clone()).collect(),
        declared: args.declared,
    }
}

/// With an instance that runs already. What it has in its environment is known if we have the same in ours.
fn with_running(settings: &Settings, client: &Client) -> Result<Report, Failure> {
    let canary = std::env::var(CANARY_VARIABLE).ok().and_then(|text| Secret::of(&text));
    let settings = Settings { canary, ..settings.clone() };
    unless_interrupted(tried(&settings, client))?.map_err(failure)
}

/// All probes with all controls on, in cells of a trial that is started with these options.
pub(crate) fn baseline(serve: &ServeArgs) -> Result<Report, Failure> {
    let battery = Battery::embedded().map_err(|error| {
        let remedy = error.remedy();
        Failure::new(Exit::Failed, error, remedy)
    })?;
    with_trial(serve, &with_all_on(battery)?)
}

/// One call of each probe, with all controls on.
fn with_all_on(battery: Battery) -> Result<Settings, Failure> {
    Ok(Settings {
        binary: std::env::current_exe().map_err(|error| Failure::plain(Exit::Failed, error))?,
        folder: PathBuf::from(OUTSIDE),
        programs: None,
        battery,
        asked: Asked::default(),
        in_flight: AT_ONCE,
        canary: None,
    })
}

/// With an instance of its own, which switches controls off if that was asked for.
fn with_trial(serve: &ServeArgs, settings: &Settings) -> Result<Report, Failure> {
    let place = Place::of(serve).map_err(|error| refused(Refusal::of(&error)))?;
    let canary = Secret::fresh().map_err(failure)?;
    let settings = Settings { canary: Some(canary.clone()), ..settings.clone() };
    let order = Order {
        args: serve,
        place: &place,
        accepted: place.accepted(),
        is_ablating: !settings.asked.is_baseline(),
        canary: Some(&canary),
        idle_exit_s: IDLE_EXIT_S,
    };
    let work = |client: Client| async move {
        match tried(&settings, &client).await {
            // Then its own last words say more.
            Err(AblationError::Client { source }) if source.is_gone() => Err(source.into()),
            done => Ok(done),
        }
    };
    match trial::run(&order, work)? {
        Tried::Done(done) => done.map_err(failure),
        Tried::Refused(refusal) => Err(refused(refusal)),
    }
}

async fn tried(settings: &Settings, client: &Client) -> Result<Report, AblationError> {
    let mut line = render::Progress::new();
    let mut tell = |progress: ablation::Progress<'_>| {
        line.tell(|| {
            let off: Vec<&str> = progress.off.iter().map(|id| id.as_str()).collect();
            let off = if off.is_empty() { "all controls on".to_owned() } else { format!("without {}", off.join(", ")) };
            format!("{} of {} calls; {off}: {}", progress.done, progress.all, progress.probe)
        });
    };
    ablation::run(settings, client, &mut tell).await
}

fn failure(error: AblationError) -> Failure {
    let remedy = error.remedy();
    if remedy.is_empty() { Failure::plain(Exit::Failed, error) } else { Failure::new(Exit::Failed, error, remedy) }
}

fn refused(refusal: Refusal) -> Failure {
    let error = anyhow::anyhow!("the instance for this did not start, or ended: {}", refusal.reason);
    match refusal.remedy {
        Some(remedy) => Failure::new(Exit::Failed, error, remedy),
        None => Failure::plain(Exit::Failed, error),
    }
}
