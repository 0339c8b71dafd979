//! The order of a start and of an end.
//!
//! Start: policy files are read while they still can be; then the process confines itself for good (a root with nothing
//! in it but the state, no network, a user without any privilege); only then is anything parsed, any thread started, any
//! socket read. End: no new calls, a grace for those that run, then they are cancelled and their outcomes written.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use toolcell_ledger::{Blobs, Ledger, LedgerError, Opening, ProgressFn, Reader};
use toolcell_policy::Policy;
use toolcell_receipts::PublicKey;
use toolcell_receipts::statement::{BuildDigest, Executor};

use crate::calls::Calls;
use crate::clock::{Clock, SystemClock};
use crate::confine::{STATE, confine};
use crate::daemon::{About, Daemon, Log, Memory};
use crate::launcher::Launcher;
use crate::recovery::{self, Restorer};
use crate::serve::{Server, Stopped};
use crate::signer::SignerClient;
use crate::starting::Starting;
use crate::survey::Surveys;
use crate::{DaemonConfig, DaemonError, LauncherError, api, logs, policy_files};

/// What is left to running calls when the daemon is asked to end.
const GRACE: Duration = Duration::from_secs(5);
/// How long their outcomes may take after they were cancelled.
const LAST_OUTCOMES: Duration = Duration::from_secs(30);
/// How long the last replies may take.
const LAST_REPLIES: Duration = Duration::from_secs(5);
/// Threads on which waiting is allowed: reads of the ledger and writes of blobs.
const WAITING_THREADS: usize = 32;

/// Runs the daemon to its end: SIGTERM, SIGINT, or quiet for as long as `idle_exit` says.
///
/// Must be called while the process has one thread. It is confined afterwards; the only thing left to do is to exit.
///
/// # Errors
/// [`DaemonError`]; whoever started the daemon prints it. Open calls are settled by the next start.
pub fn run(config: DaemonConfig) -> Result<(), DaemonError> {
    logs::start(config.log_format)?;
    let files = config.policy.as_ref().map(policy_files::read).transpose()?;
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(system("read the boot id"))?;
    let config = confine(config)?;
    let policy = files.map_or_else(Policy::builtin, |files| Policy::parse(&files));
    let policy = policy.and_then(|policy| policy.check_images(toolcell_images::NAMES).map(|()| policy));
    let policy = policy.map_err(|source| DaemonError::Policy { source })?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // The launcher, the cells, the signer and the ledger's thread want processors as well; of two, waking a second
        // worker for what the first does next costs more than it brings.
        .worker_threads(processors.div_ceil(2))
        .max_blocking_threads(WAITING_THREADS)
        .build()
        .map_err(system("start its threads"))?;
    let ended = runtime.block_on(live(config, policy, boot_id.trim().to_owned()));
    // A follower that does not read must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

fn system(doing: &'static str) -> impl Fn(std::io::Error) -> DaemonError {
    move |source| DaemonError::System { doing, source }
}

/// From the confined process to its end.
async fn live(config: DaemonConfig, policy: Policy, boot_id: String) -> Result<(), DaemonError> {
    let mut terminated = signal(SignalKind::terminate()).map_err(system("listen for SIGTERM"))?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(system("listen for SIGINT"))?;
    let executor = executor(&config, boot_id)?;
    let launcher =
        Launcher::connect(config.launcher).map_err(|error| DaemonError::Launcher { source: Arc::new(error) })?;
    // The signer lives as long as its socket is open somewhere: with an invalid ledger nobody else keeps it, and its end
    // would be that of the whole instance.
    let _signer_stays = config.signer.try_clone().map_err(system("use the signer's socket"))?;
    let signer = SignerClient::connect(config.signer).map_err(system("use the signer's socket"))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut starting = Starting::new(std::fs::File::from(config.ready));
    let parts = open(Path::new("/").join(STATE).as_path(), (signer, &executor, &clock), &mut |checked, of| {
        starting.checking(checked, of)
    })?;
    let daemon = Arc::new(Daemon {
        policy,
        log: parts.log,
        blobs: parts.blobs,
        launcher: Arc::clone(&launcher),
        calls: Arc::new(Calls::default()),
        memory: Memory::default(),
        clock,
        executor,
        about: About { version: config.version, build: config.build, idle_exit: config.idle_exit },
        operator_uids: config.operator_uids,
        accept_unavailable: config.accept_unavailable,
        unavailable: config.unavailable,
        is_root: !config.is_rootless,
        surveys: Surveys::default(),
    });
    if daemon.log.writer.is_ok()
        && let Err(problem) = recovery::settle(&daemon, config.leftovers_gone).await
    {
        tracing::error!(%problem, "open calls could not be settled");
    }
    let listener = std::os::unix::net::UnixListener::from(config.listener);
    listener.set_nonblocking(true).map_err(system("use the API's socket"))?;
    let listener = UnixListener::from_std(listener).map_err(system("use the API's socket"))?;
    let (router, calls) = (api::router(Arc::clone(&daemon)), Arc::clone(&daemon.calls));
    let server = Server::new(router, calls, daemon.operator_uids.clone());
    starting.ready().map_err(system("say that it is ready"))?;
    tracing::info!(socket = %config.socket_path.display(), instance = daemon.executor.instance, "ready");

    let accepting = server.accept(listener, config.idle_exit);
    tokio::pin!(accepting);
    tokio::select! {
        () = launcher.failed() => return Err(launcher_gone(&launcher)),
        stopped = &mut accepting => {
            if stopped == Stopped::Idle {
                tracing::info!("nobody came, so the daemon ends");
            }
        }
        _ = terminated.recv() => {
            tokio::select! { () = end_calls(&daemon.calls) => {}, _stopped = &mut accepting => {} }
        }
        _ = interrupted.recv() => {
            tokio::select! { () = end_calls(&daemon.calls) => {}, _stopped = &mut accepting => {} }
        }
    }
    server.drain(LAST_REPLIES).await;
    Ok(())
}

fn launcher_gone(launcher: &Launcher) -> DaemonError {
    DaemonError::Launcher { source: launcher.failure().unwrap_or_else(|| Arc::new(LauncherError::Gone)) }
}

/// No new calls; those that run may end by themselves, then they are cancelled.
async fn end_calls(calls: &Calls) {
    tracing::info!(live = calls.live_count(), "the daemon was asked to end");
    calls.end();
    if tokio::time::timeout(GRACE, calls.none_live()).await.is_ok() {
        return;
    }
    calls.cancel_all();
    if tokio::time::timeout(LAST_OUTCOMES, calls.none_live()).await.is_err() {
        tracing::error!(live = calls.live_count(), "calls are left without an outcome; the next start settles them");
    }
}

fn executor(config: &DaemonConfig, boot_id: String) -> Result<Executor, DaemonError> {
    let build = BuildDigest::parse(&config.build).ok_or_else(|| DaemonError::Build { got: config.build.clone() })?;
    let kernel_version = rustix::system::uname().release().to_string_lossy().into_owned();
    Ok(Executor {
        instance: config.instance.clone(),
        boot_id,
        toolcell_version: config.version.clone(),
        kernel_version,
        build,
        experiment: config.experiment.clone(),
    })
}

/// Ledger and blobs.
pub(crate) struct State {
    /// The ledger.
    pub(crate) log: Log,
    /// Kept output.
    pub(crate) blobs: Arc<Blobs>,
}

/// Opens the state. A ledger that is not what the signer remembers is opened for reading only.
///
/// # Errors
/// What kept it from being opened at all.
pub(crate) fn open(
    state: &Path,
    (mut signer, executor, clock): (impl toolcell_ledger::Sign + 'static, &Executor, &Arc<dyn Clock>),
    progress: &mut ProgressFn<'_>,
) -> Result<State, DaemonError> {
    let status = signer.status().map_err(|source| DaemonError::Signer { source })?;
    let key = PublicKey::from_pem(status.public_pem.as_bytes()).map_err(|bad| DaemonError::Signer {
        source: toolcell_ledger::SignError::Protocol { detail: bad.to_string() },
    })?;
    let blobs = Blobs::open(&state.join("blobs")).map_err(|source| DaemonError::Blobs { source })?;
    let blobs = Arc::new(blobs);
    let path = state.join("ledger.db");
    let mut payloads =
        Restorer { executor: executor.clone(), key: key.clone(), blobs: Arc::clone(&blobs), clock: Arc::clone(clock) };
    let opening = Opening { path: &path, signer: Box::new(signer), payloads: &mut payloads, progress };
    let writer = match Ledger::open(opening) {
        Ok(ledger) => Ok(ledger),
        Err(error @ LedgerError::Invalid { .. }) => {
            tracing::error!(%error, "the ledger is not what the signer remembers: no call is taken");
            Err(error)
        }
        Err(source) => return Err(DaemonError::Ledger { source }),
    };
    let reader = Reader::open(&path).map_err(|source| DaemonError::Ledger { source })?;
    Ok(State { log: Log { writer, reader: Arc::new(reader), signer: status, key }, blobs })
}
