//! Starts signer and daemon with exactly the descriptors they need, waits until the daemon is ready, and turns this
//! process into the launcher.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use toolcell_cell::CellIds;
use toolcell_sys::Child;

use super::error::{ServeError, call};
use super::settings::Settings;
use super::signals::Signals;
use super::state::Owner;
use super::tenure::Tenure;
use crate::args::LogFormat;
use crate::ready::{self, Patience, ReadyPipe, Word};
use crate::render;

/// The running binary (proc(5)); a file replaced meanwhile is not what the parts are started from.
const PROGRAM: &CStr = c"/proc/self/exe";
/// All that any part has in its environment.
const ENVIRONMENT: [&CStr; 1] = [c"LANG=C.UTF-8"];
/// For a start without progress: a daemon that checks a long ledger says how far it is; one that hangs must not hang us.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a part that gives up takes to say why.
const LAST_WORDS: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Why cells are in no groups.
const NO_GROUPS_OF_USER: &str = "without root this instance has none";
const NO_GROUPS_HERE: &str = "this machine has none that cells can be put into";

/// What the parts are given.
#[derive(Debug)]
pub(super) struct Outfit<'a> {
    pub(super) settings: &'a Settings,
    pub(super) instance: &'a str,
    pub(super) build: String,
    pub(super) tenure: &'a Tenure,
    /// Whether cells are in control groups.
    pub(super) has_groups: bool,
    pub(super) listener: OwnedFd,
    pub(super) state: OwnedFd,
    pub(super) lock: BorrowedFd<'a>,
    pub(super) signer: OwnedFd,
    pub(super) policy: Option<OwnedFd>,
}

/// Signer and daemon, running.
#[derive(Debug)]
pub(super) struct Parts {
    signer: Child,
    daemon: Child,
    /// Our end of the launcher's socket to the daemon.
    launcher: OwnedFd,
}

/// Who hears how far a start is.
#[derive(Debug)]
pub(super) struct Audience<'a> {
    /// How our own lines look.
    pub(super) log_format: LogFormat,
    /// Whoever started us and waits.
    pub(super) starter: Option<&'a OwnedFd>,
}

impl Audience<'_> {
    fn tell(&self, patience: &mut Patience, (checked, of): (u64, u64)) {
        ready::pass_on(self.starter, checked, of);
        if !patience.hear(checked) {
            return;
        }
        match self.log_format {
            LogFormat::Human => render::say(&ready::words_of(checked, of)),
            LogFormat::Json => tracing::info!(checked, of, "waiting for the ledger to be checked"),
        }
    }
}

impl Outfit<'_> {
    /// Starts both and waits until the daemon takes calls. On failure neither is left.
    pub(super) fn start(self, signals: &Signals, audience: &Audience<'_>) -> Result<Parts, ServeError> {
        let pair = |kind| {
            let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
            call("socketpair", pair)
        };
        let (launcher, to_launcher) = pair(SocketType::SEQPACKET)?;
        let (to_signer, to_daemon) = pair(SocketType::STREAM)?;
        let (ready, tell) = call("pipe2", rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC))?;

        let daemon_arguments = self.daemon_arguments()?;
        // The signer has the lock as well: none signs for this state until the one before is gone, even if a launcher
        // was killed and let go of it.
        let descriptors = [(to_daemon.as_fd(), 3), (self.signer.as_fd(), 4), (self.lock, 5)];
        let signer = spawn("starting the signer", self.signer_arguments(), &descriptors)?;
        let mut descriptors = vec![
            (self.listener.as_fd(), 3),
            (to_launcher.as_fd(), 4),
            (to_signer.as_fd(), 5),
            (self.state.as_fd(), 6),
            (tell.as_fd(), 7),
        ];
        descriptors.extend(self.policy.as_ref().map(|policy| (policy.as_fd(), 8)));
        let daemon = spawn("starting the daemon", daemon_arguments, &descriptors);
        let daemon = daemon.inspect_err(|_| end(&signer))?;
        // Our copies of the daemon's ends: its death must show as the end of these.
        drop((to_launcher, to_signer, to_daemon, tell));
        let parts = Parts { signer, daemon, launcher };
        parts.wait_until_ready(ready, signals, audience).inspect_err(|_| parts.end())?;
        Ok(parts)
    }

    fn signer_arguments(&self) -> Vec<String> {
        let mut arguments = vec!["signer".to_owned()];
        arguments.extend(self.identity(self.tenure.owners.signer));
        arguments.extend(self.settings.experiment.is_some().then(|| "--ablation".to_owned()));
        arguments.extend(["--log-format".to_owned(), self.settings.log_format.as_str().to_owned()]);
        arguments
    }

    fn identity(&self, owner: Owner) -> Vec<String> {
        let words = ["--uid".to_owned(), owner.uid.to_string(), "--gid".to_owned(), owner.gid.to_string()];
        let rootless = self.tenure.is_rootless.then(|| "--rootless".to_owned());
        words.into_iter().chain(rootless).collect()
    }

    fn daemon_arguments(&self) -> Result<Vec<String>, ServeError> {
        let operator = rustix::process::geteuid().as_raw().to_string();
        let format = self.settings.log_format.as_str();
        let mut arguments = vec!["daemon".to_owned()];
        arguments.extend(self.identity(self.tenure.owners.daemon));
        for (name, value) in [
            ("--operator-uid", operator.as_str()),
            ("--socket", text(&self.settings.socket)?),
            ("--instance", self.instance),
            ("--build", &self.build),
            ("--log-format", format),
        ] {
            arguments.extend([name.to_owned(), value.to_owned()]);
        }
        if let Some(why) = &self.tenure.no_ids {
            arguments.extend(["--no-ids".to_owned(), why.clone()]);
        }
        if !self.has_groups {
            let why = if self.tenure.is_rootless { NO_GROUPS_OF_USER } else { NO_GROUPS_HERE };
            arguments.extend(["--no-groups", why].map(str::to_owned));
        }
        // Root without groups has none to have swept.
        let is_unseen = !self.has_groups && !self.tenure.is_rootless;
        if !self.tenure.leftovers_gone || is_unseen {
            arguments.push("--leftovers-unseen".to_owned());
        }
        if let Some(seconds) = self.settings.idle_exit_s {
            arguments.extend(["--idle-exit".to_owned(), seconds.to_string()]);
        }
        if !self.settings.accept_unavailable.is_empty() {
            let names: Vec<&str> = self.settings.accept_unavailable.iter().map(|id| id.as_str()).collect();
            arguments.extend(["--accept-unavailable".to_owned(), names.join(",")]);
        }
        if let Some(experiment) = &self.settings.experiment {
            arguments.extend(["--experiment".to_owned(), experiment.clone()]);
        }
        if self.policy.is_some() {
            arguments.push("--has-policy".to_owned());
        }
        Ok(arguments)
    }
}

impl Parts {
    /// Waits for the word on the pipe, as long as the start makes progress. The end of the pipe, or of a part, means that
    /// the word will not come.
    fn wait_until_ready(&self, ready: OwnedFd, signals: &Signals, audience: &Audience<'_>) -> Result<(), ServeError> {
        let (mut ready, mut patience) = (ReadyPipe::new(ready), Patience::new(PATIENCE));
        loop {
            let timeout = Timespec::try_from(patience.left())
                .map_err(|source| ServeError::Call { call: "poll", source: io::Error::other(source) })?;
            let mut polled = [
                PollFd::new(signals, PollFlags::IN),
                PollFd::new(&ready, PollFlags::IN),
                PollFd::new(&self.signer.pidfd, PollFlags::IN),
                PollFd::new(&self.daemon.pidfd, PollFlags::IN),
            ];
            match poll(&mut polled, Some(&timeout)) {
                Ok(0) => return Err(ServeError::NotReady { part: "daemon", why: "made no progress for 30 s" }),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return call("poll", Err(errno)),
            }
            let [is_asked, has_line, ..] = polled.map(|fd| !fd.revents().is_empty());
            if is_asked {
                return Err(ServeError::Asked);
            }
            // What was written before an end counts.
            let words = if has_line { call("read", ready.words())? } else { vec![Word::End] };
            for word in words {
                match word {
                    Word::Ready => return Ok(()),
                    Word::Checking { checked, of } => audience.tell(&mut patience, (checked, of)),
                    Word::End => return Err(self.blame()),
                }
            }
        }
    }

    /// Waits until both have said why they end, as each takes the other with it, and names the one that ended badly.
    fn blame(&self) -> ServeError {
        for child in [&self.daemon, &self.signer] {
            let mut ended = [PollFd::new(&child.pidfd, PollFlags::IN)];
            match poll(&mut ended, Some(&LAST_WORDS)) {
                // One that is still there is killed in a moment.
                Ok(_) | Err(_) => {}
            }
        }
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let failed = |child: &Child| match waitid(WaitId::PidFd(child.pidfd.as_fd()), peek) {
            Ok(Some(status)) => status.exit_status() != Some(0),
            Ok(None) | Err(_) => false,
        };
        ServeError::NotReady { part: if failed(&self.signer) { "signer" } else { "daemon" }, why: "ended" }
    }

    /// Ends both and waits for their end.
    fn end(&self) {
        end(&self.daemon);
        end(&self.signer);
    }

    /// Becomes the launcher. If even that fails, `on_failure` tells it, and the parts die with this process.
    pub(super) fn become_launcher(
        self,
        (arguments, environment): (&[CString], &[CString]),
        locks: (BorrowedFd<'_>, Option<BorrowedFd<'_>>),
        on_failure: impl FnOnce(io::Error),
    ) -> ! {
        let (state, ids) = locks;
        let mut descriptors = vec![
            (self.launcher.as_fd(), 3),
            (self.daemon.pidfd.as_fd(), 4),
            (self.signer.pidfd.as_fd(), 5),
            (state, 6),
        ];
        descriptors.extend(ids.map(|ids| (ids, 7)));
        toolcell_sys::exec(PROGRAM, arguments, environment, &descriptors, on_failure)
    }
}

fn spawn(doing: &'static str, arguments: Vec<String>, fds: &[(BorrowedFd<'_>, RawFd)]) -> Result<Child, ServeError> {
    let arguments = call("execve", command_line(arguments))?;
    call(doing, toolcell_sys::spawn(PROGRAM, &arguments, &environment(), fds).map_err(io::Error::other))
}

fn command_line(arguments: Vec<String>) -> io::Result<Vec<CString>> {
    let words = std::iter::once("toolcell".to_owned()).chain(arguments);
    words.map(|word| CString::new(word).map_err(io::Error::from)).collect()
}

fn environment() -> Vec<CString> {
    ENVIRONMENT.map(CStr::to_owned).into()
}

/// The launcher's. In ablation mode it keeps what it was started with, so that there is something for a tool to see where
/// `environment.allowlist` is switched off.
pub(super) fn launcher_environment(is_ablation: bool) -> Vec<CString> {
    if !is_ablation {
        return environment();
    }
    let own = std::env::vars_os();
    own.filter_map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()).collect()
}

fn end(child: &Child) {
    match pidfd_send_signal(&child.pidfd, Signal::KILL) {
        // ESRCH: it has ended by itself.
        Ok(()) | Err(Errno::SRCH) => {}
        Err(errno) => render::say(&format!("process {} could not be killed: {errno}", child.pid)),
    }
    if let Err(errno) = waitid(WaitId::PidFd(child.pidfd.as_fd()), WaitIdOptions::EXITED) {
        render::say(&format!("process {} could not be waited for: {errno}", child.pid));
    }
}

/// The launcher's command line.
pub(super) fn launcher_arguments(
    settings: &Settings,
    instance: (&Tenure, &str, Option<&str>),
    deny: &[&Path],
    unlink: &[&Path],
) -> Result<Vec<CString>, ServeError> {
    let (tenure, instance, cgroup_parent) = instance;
    let mut arguments = vec!["launcher".to_owned()];
    if tenure.is_rootless {
        arguments.push("--rootless".to_owned());
    }
    let mut add = |name: &str, value: &str| arguments.extend([name.to_owned(), value.to_owned()]);
    if let CellIds::Range { uid, gid, cells } = tenure.ids {
        add("--cell-uids", &uid.to_string());
        add("--cell-gids", &gid.to_string());
        add("--cells", &cells.to_string());
    }
    add("--instance", instance);
    add("--runtime-dir", text(&settings.runtime)?);
    if let Some(parent) = cgroup_parent {
        add("--cgroup-parent", parent);
    }
    for path in deny {
        add("--deny-path", text(path)?);
    }
    for path in unlink {
        add("--unlink", text(path)?);
    }
    if !settings.accept_unavailable.is_empty() {
        let names: Vec<&str> = settings.accept_unavailable.iter().map(|id| id.as_str()).collect();
        add("--accept-unavailable", &names.join(","));
    }
    add("--log-format", settings.log_format.as_str());
    arguments.extend(settings.experiment.is_some().then(|| "--ablation".to_owned()));
    call("execve", command_line(arguments))
}

fn text(path: &Path) -> Result<&str, ServeError> {
    path.to_str().ok_or_else(|| ServeError::Unsafe {
        path: path.to_owned(),
        why: "is not UTF-8",
        remedy: "name a path in UTF-8",
    })
}
