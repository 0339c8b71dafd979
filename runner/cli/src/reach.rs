//! Which daemon is asked: the one behind a named socket as it is, or one's own, started or replaced if need be.
//!
//! A daemon that `run` started is one's own, so what it is like must be what was asked for: the same build, the same
//! policy, the same accepted gaps. An idle one that differs is replaced; one that is busy, or that somebody started
//! with `serve`, is never ended: the command is refused with a word.

mod autostart;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_client::{Client, ClientError};
use toolcell_policy::Policy;
use toolcell_types::{ControlId, ErrorCode, Health, Sha256};

pub(crate) use self::autostart::{IDLE_EXIT_S, wait as wait_until_ready};
use self::autostart::{StartLock, start};

use crate::args::{ReachArgs, StartArgs};
use crate::build_digest;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paths::Places;
use crate::serve;

/// How long an idle daemon may take to end.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// A daemon that answers.
#[derive(Debug)]
pub(crate) struct Reached {
    /// Asks it.
    pub(crate) client: Client,
    /// The socket, if the user named it.
    named: Option<PathBuf>,
    /// The log of a daemon that `run` started.
    log: Option<PathBuf>,
}

impl Reached {
    /// The socket to repeat in commands that are shown to the user.
    pub(crate) fn named(&self) -> Option<&Path> {
        self.named.as_deref()
    }

    /// Whether whoever asks is an operator, as far as can be known: root is one everywhere, anybody of one's own daemon.
    pub(crate) fn is_operators(&self) -> bool {
        rustix::process::geteuid().is_root() || self.named.is_none()
    }

    /// Where the daemon writes, if that is known.
    pub(crate) fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}

/// Starts a daemon of one's own again that is gone: one that ended in that very moment for want of calls, or one that
/// died. Then the call that was asked about can be asked about again; its name makes it the same call, which never runs
/// twice.
///
/// # Errors
/// The error itself, if it is another or the daemon is somebody else's; or why there is no daemon.
pub(crate) async fn revive(
    reached: &Reached,
    start: &StartArgs,
    error: ClientError,
) -> Result<Result<(), ClientError>, Failure> {
    if !error.is_gone() || reached.named.is_some() {
        return Ok(Err(error));
    }
    reach_exactly(start).await?;
    Ok(Ok(()))
}

/// What a daemon of one's own has to be like.
#[derive(Debug)]
struct Wanted {
    build: String,
    /// The folder to be named to a daemon that is started.
    policy_folder: Option<PathBuf>,
    /// The folder that it will read, named or not.
    checked_folder: Option<PathBuf>,
    policy: Sha256,
    accept: Vec<ControlId>,
    /// Whether the policy or the gaps were asked for by option.
    is_explicit: bool,
}

/// For commands that run something: the daemon is as the options say.
pub(crate) async fn reach_exactly(args: &StartArgs) -> Result<Reached, Failure> {
    if args.reach.socket.is_some() {
        if args.policy.is_some() || !args.accept_unavailable.is_empty() {
            let error = anyhow!("--policy and --accept-unavailable are for a daemon that this command starts");
            return Err(Failure::new(Exit::Usage, error, "with --socket, give them to `toolcell serve`"));
        }
        return reach_any(&args.reach).await;
    }
    let places = own_places()?;
    let wanted = Wanted::of(args, &places)?;
    own(&places, Some(&wanted)).await
}

/// For commands that only look or cancel: any daemon that is there.
pub(crate) async fn reach_any(args: &ReachArgs) -> Result<Reached, Failure> {
    match &args.socket {
        Some(socket) => Ok(Reached { client: Client::new(socket), named: Some(socket.clone()), log: None }),
        None => own(&own_places()?, None).await,
    }
}

fn own_places() -> Result<Places, Failure> {
    serve::own_places().map_err(|error| {
        let remedy = format!("{}; or name the socket of a daemon that serves you: --socket PATH", error.remedy());
        Failure::new(Exit::Failed, error, remedy)
    })
}

/// One's own daemon. A look without the lock first: that is the way of nearly every call.
async fn own(places: &Places, wanted: Option<&Wanted>) -> Result<Reached, Failure> {
    let client = Client::new(places.socket());
    let reached = |client| Reached { client, named: None, log: Some(places.log()) };
    if is_fit(&client, wanted).await?.is_some_and(|misfit| misfit.is_none()) {
        return Ok(reached(client));
    }
    let lock = StartLock::take(places).await?;
    match is_fit(&client, wanted).await? {
        Some(None) => {}
        Some(Some(misfit)) => {
            check_policy(wanted)?;
            replace(&client, &misfit).await?;
            start(places, wanted.map(StartOptions::of).unwrap_or_default())?;
        }
        None => {
            check_policy(wanted)?;
            start(places, wanted.map(StartOptions::of).unwrap_or_default())?;
        }
    }
    drop(lock);
    Ok(reached(client))
}

/// Before any daemon is ended for it: one that would not be taken must cost nobody his.
fn check_policy(wanted: Option<&Wanted>) -> Result<(), Failure> {
    let Some(folder) = wanted.and_then(|wanted| wanted.checked_folder.as_deref()) else { return Ok(()) };
    serve::check_policy(folder).map_err(|error| {
        let remedy = error.remedy();
        Failure::new(Exit::Usage, error, remedy)
    })
}

/// What a daemon to be started is told.
#[derive(Debug, Default)]
struct StartOptions<'a> {
    policy: Option<&'a Path>,
    accept: &'a [ControlId],
}

impl<'a> StartOptions<'a> {
    fn of(wanted: &'a Wanted) -> Self {
        Self { policy: wanted.policy_folder.as_deref(), accept: &wanted.accept }
    }
}

/// None if nobody is there; else whether, and in what, the daemon differs from what is wanted.
async fn is_fit(client: &Client, wanted: Option<&Wanted>) -> Result<Option<Option<Misfit>>, Failure> {
    match client.health().await {
        Ok(health) => Ok(Some(wanted.and_then(|wanted| wanted.differs_from(&health)))),
        Err(error) if error.is_nobody_there() => Ok(None),
        // It was about to end when we connected.
        Err(ClientError::Transport { .. }) => Ok(None),
        Err(error) => Err(Failure::of_client(error)),
    }
}

/// In what a daemon differs from what is wanted.
#[derive(Debug, PartialEq, Eq)]
struct Misfit {
    what: &'static str,
    /// Whether it ends by itself, so that nobody but us relies on it.
    is_ours: bool,
}

impl Wanted {
    fn of(args: &StartArgs, places: &Places) -> Result<Self, Failure> {
        let build = build_digest::of_self().map_err(|source| {
            Failure::plain(Exit::Failed, anyhow::Error::new(source).context("cannot read /proc/self/exe"))
        })?;
        let folder = match &args.policy {
            Some(folder) => Some(std::path::absolute(folder).map_err(|source| policy_unreadable(folder, source))?),
            None => Some(places.policy()).filter(|folder| folder.is_dir()),
        };
        let policy = match &folder {
            Some(folder) => {
                let file = folder.join(TOOLS);
                digest(&std::fs::read(&file).map_err(|source| policy_unreadable(&file, source))?)
            }
            None => digest(Policy::BUILTIN_TOOLS.as_bytes()),
        };
        let mut accept = args.accept_unavailable.clone();
        accept.sort_unstable();
        accept.dedup();
        let is_explicit = args.policy.is_some() || !accept.is_empty();
        // A folder that was not asked for is the one that `serve` finds by itself.
        let policy_folder = folder.clone().filter(|_| args.policy.is_some());
        Ok(Self { build, policy_folder, checked_folder: folder, policy, accept, is_explicit })
    }

    /// A daemon that an operator serves is as he wants it, unless something else is asked for by option.
    fn differs_from(&self, health: &Health) -> Option<Misfit> {
        let is_ours = health.ends_when_idle;
        let misfit = |what| Some(Misfit { what, is_ours });
        if health.build != self.build {
            return misfit("is of another build");
        }
        if !is_ours && !self.is_explicit {
            return None;
        }
        let mut accepted = health.accept_unavailable.clone();
        accepted.sort_unstable();
        accepted.dedup();
        if accepted != self.accept {
            return misfit("accepts other controls as unavailable");
        }
        if health.policy != self.policy {
            return misfit("has another policy");
        }
        None
    }
}

const TOOLS: &str = "tools.toml";

/// The policy digest of a folder with this one file: SHA-256 over the line `name NUL sha256-hex LF`.
fn digest(tools: &[u8]) -> Sha256 {
    let file = Sha256(Hasher::digest(tools).into());
    Sha256(Hasher::digest(format!("{TOOLS}\0{}\n", file.hex())).into())
}

fn policy_unreadable(path: &Path, source: std::io::Error) -> Failure {
    let error = anyhow::Error::new(source).context(format!("cannot read the policy {}", path.display()));
    Failure::new(Exit::Usage, error, "name a folder with a tools.toml: --policy DIR")
}

/// Ends an idle daemon that differs. Whether it is idle, only it can tell, at the moment it ends.
async fn replace(client: &Client, misfit: &Misfit) -> Result<(), Failure> {
    if !misfit.is_ours {
        let error = anyhow!("the daemon that serves {} {}", client.socket().display(), misfit.what);
        return Err(Failure::new(
            Exit::Refused,
            error,
            "end that `toolcell serve`, or ask it by its --socket as it is",
        ));
    }
    match end_idle(client).await.map_err(Failure::of_client)? {
        Ending::Gone => Ok(()),
        Ending::Busy(error) => {
            let error = anyhow::Error::new(error).context(format!("the running daemon {} and is busy", misfit.what));
            Err(Failure::new(Exit::Refused, error, "try again once its calls are over: toolcell calls"))
        }
        Ending::Stuck => {
            let error = anyhow!("the daemon that {} was asked to end and did not", misfit.what);
            Err(Failure::new(Exit::Failed, error, "end it: look for `toolcell launcher` in ps"))
        }
    }
}

/// What became of a daemon that was asked to end.
#[derive(Debug)]
pub(crate) enum Ending {
    /// Nobody listens any more.
    Gone,
    /// It has calls, and goes on.
    Busy(ClientError),
    /// It said yes and is still there.
    Stuck,
}

/// Asks a daemon to end, which it does only if it is idle, and waits for its end.
///
/// # Errors
/// Whatever else it answers.
pub(crate) async fn end_idle(client: &Client) -> Result<Ending, ClientError> {
    match client.shutdown().await {
        Ok(_) => {}
        Err(error) if error.problem().is_some_and(|problem| problem.code == ErrorCode::QueueFull) => {
            return Ok(Ending::Busy(error));
        }
        // One that just ended by itself.
        Err(error) if error.is_nobody_there() => return Ok(Ending::Gone),
        Err(error) => return Err(error),
    }
    let begin = Instant::now();
    while !matches!(client.health().await, Err(error) if error.is_nobody_there()) {
        if begin.elapsed() > END_PATIENCE {
            return Ok(Ending::Stuck);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(Ending::Gone)
}

#[cfg(test)]
mod tests;
