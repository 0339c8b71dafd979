//! What stands outside of a cell for one call: what its probe is told of, and who sees whether it got there.
//!
//! Guarantees: everything is made anew for each call, as the user who runs this, with a secret that no probe is told; it
//! goes when it is dropped. What only a process can hold (environment and memory, System V objects, a POSIX queue) is
//! held by a *bystander*, a child that ends and removes it when its standard input ends, so also when we are killed.

mod bystander;
mod files;
mod listeners;
mod secret;

use std::path::PathBuf;
use std::time::Duration;

use self::bystander::Bystander;
use self::files::Files;
use self::listeners::Listeners;
pub use self::secret::Secret;
pub(super) use self::secret::token;
use super::error::AblationError;
use super::words::{Instrument, Witness};

/// The word by which the program is started as a bystander; words of [`Instrument`] follow.
pub const BYSTANDER: &str = "bystander";
/// The variable that holds the secret, in a victim's environment.
pub const SECRET_VARIABLE: &str = "PROBE_SECRET";
/// The variable that holds a secret in the environment of an instance that is tried.
pub const CANARY_VARIABLE: &str = "PROBE_CANARY";
/// What a bystander is asked for, one line, and answers with a number: how often SIGUSR1 came.
pub const SIGNALS: &str = "signals";

/// How long a witness may take to see what has happened: its task has to get its turn.
const SETTLING: Duration = Duration::from_millis(10);
/// The same where a probe says that it got through.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where things are made.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The program that bystanders are started from.
    pub(super) binary: PathBuf,
    /// The folder that files lie in, each call's in one of its own. No scratch of cells may be a view of it.
    pub(super) folder: PathBuf,
}

/// Everything of one call.
#[derive(Debug)]
pub(super) struct Outside {
    secret: Secret,
    arguments: Vec<(&'static str, String)>,
    listeners: Listeners,
    files: Files,
    victim: Option<Bystander>,
    _objects: Option<Bystander>,
}

impl Outside {
    /// Makes what is needed.
    pub(super) async fn set_up(needs: &[Instrument], place: &Place) -> Result<Self, AblationError> {
        let secret = Secret::fresh()?;
        let mut arguments = Vec::new();
        let files = Files::make(needs, &place.folder, &secret, &mut arguments)?;
        let listeners = Listeners::open(needs, files.folder(), &secret, &mut arguments)?;
        let victim = Bystander::victim(needs, place, &secret, &mut arguments).await?;
        let objects = Bystander::objects(needs, place, &secret, &mut arguments).await?;
        if needs.contains(&Instrument::Hostname) {
            let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
            arguments.push((Instrument::Hostname.as_str(), name));
        }
        Ok(Self { secret, arguments, listeners, files, victim, _objects: objects })
    }

    /// `name=value` for each.
    pub(super) fn arguments(&self) -> Vec<String> {
        self.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Whether this witness has seen that the probe got through. `says_reached`: the probe says so, which may be heard
    /// here before it is seen.
    pub(super) async fn has_seen(&mut self, witness: Witness, told: &Told<'_>) -> Result<bool, AblationError> {
        tokio::time::sleep(SETTLING).await;
        let patience = if told.says_reached() { PATIENCE } else { SETTLING };
        let began = std::time::Instant::now();
        loop {
            let has_seen = match witness {
                Witness::Tcp | Witness::Udp | Witness::Abstract | Witness::Socket => self.listeners.were_met(witness),
                Witness::Signal => match &mut self.victim {
                    Some(victim) => victim.signals()? > 0,
                    None => false,
                },
                Witness::Target => self.files.were_changed()?,
                Witness::Secret => {
                    self.secret.is_in(told.last_line) || told.canary.is_some_and(|canary| canary.is_in(told.last_line))
                }
                Witness::Throttled => told.throttled_us.unwrap_or(0) == 0,
            };
            if has_seen || began.elapsed() > patience {
                return Ok(has_seen);
            }
            tokio::time::sleep(SETTLING).await;
        }
    }
}

/// What a call has told that a witness looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) last_line: &'a str,
    /// For how long the processor quota held it back; none where no group counts that.
    pub(super) throttled_us: Option<u64>,
    /// The secret in the instance's environment.
    pub(super) canary: Option<&'a Secret>,
}

impl Told<'_> {
    fn says_reached(&self) -> bool {
        self.last_line.starts_with("REACHED")
    }
}
