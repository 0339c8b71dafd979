//! `toolcell serve`: opens what the parts need, starts them, and becomes the launcher.
//!
//! Everything happens in one thread, in this order: look at the machine and the policy; end an idle daemon that `run`
//! started; lock the state folder and a range of ids;
//! give the state to those ids; listen; start the signer (with the key's folder) and the daemon (with everything
//! else); wait until it is ready; become the launcher by exec, with a clean environment and only the descriptors that
//! it needs. Nothing is started when a check fails, and a failed start leaves no process and no socket.

mod checks;
mod contained;
mod error;
mod holder;
mod ids;
mod listener;
mod place;
mod rootless;
mod settings;
mod signals;
mod start;
mod state;
mod tenure;
mod trial_home;

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

pub(crate) use self::checks::policy as check_policy;
pub(crate) use self::error::ServeError;
use self::error::{call, file};
pub(crate) use self::holder::Serving;
pub(crate) use self::place::Place;
pub(crate) use self::rootless::own_places;
use self::settings::Settings;
use self::signals::Signals;
use self::start::{Audience, Outfit, Parts, launcher_arguments, launcher_environment};
use self::state::State;
use self::tenure::Tenure;
pub(crate) use self::trial_home::TrialHome;
use crate::args::{LogFormat, ServeArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{build_digest, logs, render};

/// An instance that ends, or was killed, lets go of its state and of its socket one after the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves until it is told to end. Returns only if that was before there was a launcher to take over, or on failure.
pub(crate) fn serve(args: &ServeArgs) -> Result<Exit, Failure> {
    match prepare(args) {
        Ok(never) => match never {},
        // The part has said itself why, and what to do.
        Err(error @ ServeError::NotReady { .. }) => Err(Failure::plain(Exit::Failed, error)),
        Err(ServeError::Asked) => Ok(Exit::Ok),
        Err(error) => {
            tell_missing(&error);
            let remedy = error.remedy();
            Err(Failure::new(Exit::Failed, error, remedy))
        }
    }
}

/// A line of the log, for `doctor` and other programs that read it.
fn tell_missing(error: &ServeError) {
    let controls: Vec<&str> = error.controls().iter().map(|id| id.as_str()).collect();
    if !controls.is_empty() {
        let controls = controls.join(",");
        tracing::info!(controls, "what cannot be had here");
    }
}

fn prepare(args: &ServeArgs) -> Result<Infallible, ServeError> {
    // What whoever started us left open reaches none of the parts.
    call("close_range", toolcell_sys::limit_fds_to_stdio())?;
    let ready = args.ready_fd.map(|number| call("fcntl", toolcell_sys::inherited_fd(number))).transpose()?;
    if args.detach {
        call("setsid", rustix::process::setsid())?;
    }
    rustix::process::umask(Mode::from_raw_mode(0o077));
    checks::machine()?;
    let is_root = rustix::process::geteuid().is_root();
    let places = own_places().map_err(|source| ServeError::Rootless { source })?;
    let settings = settings::of(args, &places)?;
    if !is_root {
        checks::for_ordinary_users(&settings)?;
    }
    call("setting up the log", logs::begin(settings.log_format).map_err(std::io::Error::other))?;
    // No folder is kept busy by a daemon that once was started in it; all paths are absolute by now.
    call("chdir", rustix::process::chdir("/"))?;

    if is_root {
        checks::groups(&settings)?;
    }
    // Before anybody has to make way.
    settings.policy.as_deref().map(checks::policy).transpose()?;
    holder::make_way(&settings)?;
    let state = State::open(&settings.state, PATIENCE)?;
    trial_home::sweep(&state.path, &settings.runtime);
    state.must_be_of(settings.experiment.is_some())?;
    let instance = state.instance()?;
    let signals = Signals::hold()?;
    listener::make_folder(&settings.runtime)?;
    checks::is_operators_own(&settings.runtime)?;
    let tenure = if is_root { Tenure::of_root(&settings)? } else { Tenure::without_root(&settings, &state)? };
    if let Err(source) = toolcell_cell::probe() {
        tenure.remove_lock();
        return Err(ServeError::Cells { source });
    }
    let held = Held { settings, state, instance, tenure, signals };
    Err(held.serve(ready))
}

/// What this instance has for itself from here on.
#[derive(Debug)]
struct Held {
    settings: Settings,
    state: State,
    instance: String,
    tenure: Tenure,
    signals: Signals,
}

impl Held {
    /// What is removed with the instance: its socket, and the file of its ids' lock.
    fn ours(&self) -> Vec<&Path> {
        let lock = self.tenure.lock.as_ref().map(|(_, path)| path.as_path());
        std::iter::once(self.settings.socket.as_path()).chain(lock).collect()
    }
}

impl Held {
    /// Never comes back from a start that succeeds.
    fn serve(self, ready: Option<OwnedFd>) -> ServeError {
        let (listener, cgroup_parent) = match self.settle_and_listen() {
            Ok(settled) => settled,
            // The socket may be somebody else's.
            Err(error) => return abandon(error, self.ours().get(1..).unwrap_or_default()),
        };
        let ours = self.ours();
        let (parts, arguments) = match self.start(listener, (cgroup_parent.as_deref(), &ours), ready.as_ref()) {
            Ok(started) => started,
            Err(error) => return abandon(error, &ours),
        };
        self.announce(ready);
        let ids = self.tenure.lock.as_ref().map(|(lock, _)| lock.as_fd());
        let environment = launcher_environment(self.settings.experiment.is_some());
        parts.become_launcher((&arguments, &environment), (self.state.folder.as_fd(), ids), |source| {
            let error = abandon(ServeError::Call { call: "execve", source }, &ours);
            render::say(&format!("{:#}", anyhow::Error::new(error)));
        })
    }

    /// Once nothing of an earlier life runs any more, what it left is given to the ids of this one.
    fn settle_and_listen(&self) -> Result<(OwnedFd, Option<String>), ServeError> {
        let cgroup_parent = self.settle_groups()?;
        self.state.hand_over(self.tenure.owners)?;
        let listener = listener::listen(&self.settings.socket, self.settings.socket_mode, PATIENCE)?;
        Ok((listener, cgroup_parent))
    }

    /// The parent of this instance's groups; none where they cannot be had and that was accepted.
    fn settle_groups(&self) -> Result<Option<String>, ServeError> {
        const WHAT: &str = "the cgroups of this instance cannot be set up";
        let given = self.settings.cgroup_parent.as_deref();
        // An ordinary user has groups where they were given to that user, or are said to be.
        if self.tenure.is_rootless && given.is_none() && !toolcell_cell::are_groups_given() {
            return Ok(None);
        }
        match toolcell_cell::settle_groups(given, &self.instance) {
            Ok(parent) => Ok(Some(parent)),
            Err(source) => self.settings.go_without_groups(source, WHAT).map(|()| None),
        }
    }

    fn start(
        &self,
        listener: OwnedFd,
        (cgroup_parent, ours): (Option<&str>, &[&Path]),
        starter: Option<&OwnedFd>,
    ) -> Result<(Parts, Vec<CString>), ServeError> {
        let settings = &self.settings;
        let mut deny = vec![self.state.path.as_path(), &settings.runtime, &settings.socket];
        deny.extend(settings.policy.as_deref());
        let arguments = launcher_arguments(settings, (&self.tenure, &self.instance, cgroup_parent), &deny, ours)?;
        let outfit = Outfit {
            settings,
            instance: &self.instance,
            build: call("reading /proc/self/exe", build_digest::of_self())?,
            tenure: &self.tenure,
            has_groups: cgroup_parent.is_some(),
            listener,
            state: self.state.again()?,
            lock: self.state.signer_lock.as_fd(),
            signer: self.state.signer_folder()?,
            policy: settings.policy.as_deref().map(open_policy).transpose()?,
        };
        let audience = Audience { log_format: settings.log_format, starter };
        Ok((outfit.start(&self.signals, &audience)?, arguments))
    }

    fn announce(&self, ready: Option<OwnedFd>) {
        let (socket, state) = (self.settings.socket.display(), self.state.path.display());
        match self.settings.log_format {
            LogFormat::Human => render::say(&format!("serving {socket} (instance {}, state {state})", self.instance)),
            LogFormat::Json => tracing::info!(%socket, instance = self.instance, %state, "serving"),
        }
        match (&self.settings.experiment, self.settings.log_format) {
            (None, _) => {}
            (Some(name), LogFormat::Human) => render::say(&format!(
                "ABLATION MODE (experiment {name}): calls may switch controls off; run nothing here that you do not trust"
            )),
            (Some(name), LogFormat::Json) => tracing::warn!(experiment = name, "ablation mode"),
        }
        // Whoever waited for this may be gone; serving does not depend on it.
        drop(ready.map(|ready| File::from(ready).write_all(b"ready\n")));
    }
}

fn open_policy(path: &Path) -> Result<OwnedFd, ServeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = file("open", path, rustix::fs::open(path, flags, Mode::empty()))?;
    checks::is_operators_own(path)?;
    Ok(folder)
}

/// Removes what would be left of a start that failed. The first error is the one to tell.
fn abandon(error: ServeError, left: &[&Path]) -> ServeError {
    for path in left {
        if let Err(source) = std::fs::remove_file(path)
            && source.kind() != std::io::ErrorKind::NotFound
        {
            render::say(&format!("{} could not be removed: {source}", path.display()));
        }
    }
    error
}
