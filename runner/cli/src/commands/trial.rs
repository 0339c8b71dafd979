//! A `serve` in a place of its own, for the time of some work: started with the given options, asked, ended, removed.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::io::FdFlags;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use toolcell_cell::OwnGroup;
use toolcell_client::Client;
use toolcell_lab::ablation::outside::{CANARY_VARIABLE, Secret};
use toolcell_types::ControlId;

use crate::args::ServeArgs;
use crate::build_digest::SELF_EXE;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paths::VARIABLES;
use crate::reach::wait_until_ready;
use crate::serve::{Place, ServeError, TrialHome};

/// How long a `serve` that gives up may take to end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// From the word that it shall end to its end; longer than `serve` gives its own parts.
const END_PATIENCE: Duration = Duration::from_secs(15);

/// How a trial is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'a> {
    /// The options of `serve`, but for its place.
    pub(crate) args: &'a ServeArgs,
    /// Beside what it is made.
    pub(crate) place: &'a Place,
    /// Controls that may be missing.
    pub(crate) accepted: &'a [ControlId],
    /// Whether controls may be switched off in it.
    pub(crate) is_ablating: bool,
    /// A secret that it has in its environment, for probes to look for.
    pub(crate) canary: Option<&'a Secret>,
    /// Were this process killed, the trial would end by itself after so long without a call.
    pub(crate) idle_exit_s: u32,
}

/// What became of a trial.
#[derive(Debug)]
pub(crate) enum Tried<T> {
    /// It started, and the work was done.
    Done(T),
    /// It did not start, or ended before the work was done.
    Refused(Refusal),
}

/// Why `serve` does not start.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    /// In its own words.
    pub(crate) reason: String,
    /// What to do.
    pub(crate) remedy: Option<String>,
    /// Controls that are known to be missing by it.
    pub(crate) is_about: Vec<ControlId>,
}

impl Refusal {
    /// What a start says.
    pub(crate) fn of(error: &ServeError) -> Self {
        Self { reason: with_causes(error), remedy: Some(error.remedy()), is_about: error.controls() }
    }
}

fn with_causes(error: &ServeError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

/// Starts one, does the work with it, and ends it, whatever comes between. Ctrl-C ends it as well.
///
/// # Errors
/// The machine keeps even the trial's own place from being made.
pub(crate) fn run<T, W>(order: &Order<'_>, work: impl FnOnce(Client) -> W) -> Result<Tried<T>, Failure>
where
    W: Future<Output = anyhow::Result<T>>,
{
    let fault = |error: anyhow::Error| Failure::plain(Exit::Failed, error);
    let home = match order.place.make_trial_home() {
        Ok(home) => home,
        // Where the trial's state cannot be, the state itself cannot be.
        Err(error) => return Ok(Tried::Refused(Refusal::of(&error))),
    };
    let group = OwnGroup::of_process();
    let (serve, ready) = launch(order, &home).context("cannot start serve").map_err(fault)?;
    let mut serve = Serve(serve);
    let client = Client::new(home.socket());
    let work = async {
        if !tokio::task::spawn_blocking(move || wait_until_ready(ready)).await.context("nobody waited")?? {
            return Ok(None);
        }
        work(client).await.map(Some)
    };
    let asked = unless_interrupted(work);
    if matches!(asked, Ok(Ok(None) | Err(_))) {
        serve.wait_for_last_words();
    }
    let ended = serve.end();
    // On cgroup version 2 it may have moved us out of its way.
    if let Some(Err(error)) = group.as_ref().map(OwnGroup::go_back) {
        tracing::debug!(error = %error, "this process stays in the leaf of its group");
    }
    match asked? {
        Ok(Some(done)) => {
            ended.context("the trial's serve did not end").map_err(fault)?;
            Ok(Tried::Done(done))
        }
        Ok(None) => Ok(Tried::Refused(last_words(&home.log(), "it said nothing"))),
        Err(error) => Ok(Tried::Refused(last_words(&home.log(), &format!("{error:#}")))),
    }
}

/// Does the work on a runtime of its own, which is gone afterwards with every task of the work.
///
/// # Errors
/// [`Exit::Cancelled`] after Ctrl-C or SIGTERM: then the work was dropped.
pub(crate) fn unless_interrupted<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let fault = |error: io::Error| Failure::plain(Exit::Failed, anyhow::Error::new(error).context("cannot wait"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fault)?;
    runtime.block_on(async {
        let mut interrupted = signal(SignalKind::interrupt()).map_err(fault)?;
        let mut terminated = signal(SignalKind::terminate()).map_err(fault)?;
        tokio::select! {
            done = work => return Ok(done),
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        Err(Failure::plain(Exit::Cancelled, anyhow::anyhow!("interrupted; what was started for this is ended")))
    })
}

/// The trial's `serve`. Ended when dropped, if it was not before.
#[derive(Debug)]
struct Serve(Child);

impl Serve {
    /// Asks it to end, waits, and kills it only if it does not.
    fn end(mut self) -> io::Result<()> {
        self.stop()
    }

    /// It lets go of its pipe, and of its socket, a moment before it has said why.
    fn wait_for_last_words(&mut self) {
        let begin = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) && begin.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn stop(&mut self) -> io::Result<()> {
        if self.0.try_wait()?.is_some() {
            return Ok(());
        }
        let pid = i32::try_from(self.0.id()).map_err(io::Error::other)?;
        kill(Pid::from_raw(pid), Signal::SIGTERM)?;
        let begin = Instant::now();
        while self.0.try_wait()?.is_none() {
            if begin.elapsed() > END_PATIENCE {
                self.0.kill()?;
                let _status = self.0.wait()?;
                return Err(io::Error::other("it was killed"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            crate::render::say(&format!("the trial's serve: {error}"));
        }
    }
}

/// `serve` with the given options, but for its place, and with nothing of ours but the pipe that it tells us on.
fn launch(order: &Order<'_>, home: &TrialHome) -> io::Result<(Child, OwnedFd)> {
    let (args, accepted) = (order.args, order.accepted);
    let log = File::options().append(true).create_new(true).open(home.log())?;
    let (ready, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&tell, FdFlags::empty())?;
    #[expect(clippy::disallowed_methods, reason = "the command line starts our own parts")]
    let mut command = Command::new(SELF_EXE);
    command.arg0("toolcell").env_clear();
    command.envs(VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.args(["serve", "--log-format", "json", "--idle-exit", &order.idle_exit_s.to_string()]);
    command.args(["--ready-fd", &tell.as_raw_fd().to_string()]);
    command.arg("--state").arg(home.state()).arg("--socket").arg(home.socket());
    if let Some(config) = &args.config {
        command.arg("--config").arg(config);
    }
    if let Some(policy) = &args.policy {
        command.arg("--policy").arg(policy);
    }
    if let Some(base) = args.uid_base {
        command.args(["--uid-base", &base.to_string()]);
    }
    if let Some(parent) = &args.cgroup_parent {
        command.args(["--cgroup-parent", parent]);
    }
    if args.socket_mode.is_some() {
        // Whatever is asked for: nobody else's call may be run by an instance whose log goes with it.
        command.args(["--socket-mode", "600"]);
    }
    if !accepted.is_empty() {
        let names: Vec<&str> = accepted.iter().map(|id| id.as_str()).collect();
        command.args(["--accept-unavailable", &names.join(",")]);
    }
    if order.is_ablating {
        command.arg("--ablation");
    }
    if let Some(canary) = order.canary {
        command.env(CANARY_VARIABLE, canary.text());
    }
    command.stdin(Stdio::null()).stdout(Stdio::from(log.try_clone()?)).stderr(Stdio::from(log));
    Ok((command.spawn()?, ready))
}

/// What it said about its end: the first error that also says what to do, else the first error, else `otherwise`.
fn last_words(log: &Path, otherwise: &str) -> Refusal {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    words_of(&text).unwrap_or_else(|| Refusal { reason: otherwise.to_owned(), remedy: None, is_about: Vec::new() })
}

fn words_of(log: &str) -> Option<Refusal> {
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let errors: Vec<&Value> = lines.iter().filter(|line| line["level"] == "ERROR").collect();
    let controls = lines.iter().filter_map(|line| line["controls"].as_str()).flat_map(|names| names.split(','));
    let line = errors.iter().find(|line| line["hint"].is_string()).or(errors.first())?;
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let is_about = controls.filter_map(ControlId::parse).collect();
    Some(Refusal { reason: text("message").unwrap_or_default(), remedy: text("hint"), is_about })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_that_says_what_to_do_is_the_one_that_is_told() {
        let log = "{\"level\":\"INFO\",\"message\":\"what is missing\",\"controls\":\"landlock.fs,proc.masked\"}\nnot json\n\
                   {\"level\":\"ERROR\",\"message\":\"the connection to the launcher has ended\"}\n\
                   {\"level\":\"ERROR\",\"message\":\"this kernel has no Landlock\",\"hint\":\"boot another\"}\n";
        let refusal = words_of(log).unwrap();
        assert_eq!(
            (refusal.reason.as_str(), refusal.remedy.as_deref()),
            ("this kernel has no Landlock", Some("boot another"))
        );
        assert_eq!(refusal.is_about, [ControlId::LandlockFs, ControlId::ProcMasked]);
        let bare = words_of("{\"level\":\"ERROR\",\"message\":\"asked to end\"}\n").unwrap();
        assert_eq!((bare.reason.as_str(), bare.remedy, bare.is_about), ("asked to end", None, Vec::new()));
        assert!(words_of("").is_none() && words_of("{\"level\":\"WARN\",\"message\":\"x\"}").is_none());
    }
}
