//! What every request needs: the policy, the ledger, the launcher, the live calls, the clocks, and who we are.
//!
//! Immutable after the start, shared by all tasks. Does not: do anything by itself.

use std::sync::Arc;
use std::time::Duration;

use toolcell_ledger::{Attempt, Blobs, Committed, DoneFn, Header, Ledger, LedgerError, Reader};
use toolcell_policy::Policy;
use toolcell_policy::request::Ablation;
use toolcell_receipts::statement::Executor;
use toolcell_receipts::{PublicKey, UnixMicros};
use toolcell_types::signing::SignerStatus;
use toolcell_types::{ControlId, ErrorCode, Problem};

use crate::UnavailableControl;
use crate::calls::{CallKey, Calls};
use crate::clock::{Clock, micros};
use crate::launcher::Launcher;
use crate::recovery;
use crate::shares::{Bounds, Shares};
use crate::survey::Surveys;

/// Shared by all tasks.
#[derive(Debug)]
pub(crate) struct Daemon {
    /// Which tools there are, and for whom.
    pub(crate) policy: Policy,
    /// The log of calls.
    pub(crate) log: Log,
    /// Kept output.
    pub(crate) blobs: Arc<Blobs>,
    /// Where cells come from.
    pub(crate) launcher: Arc<Launcher>,
    /// What is not over.
    pub(crate) calls: Arc<Calls>,
    /// Memory that clients can make us use.
    pub(crate) memory: Memory,
    /// What time it is.
    pub(crate) clock: Arc<dyn Clock>,
    /// Who we are, as it stands in receipts.
    pub(crate) executor: Executor,
    /// Who we are, as a client is told.
    pub(crate) about: About,
    /// Which users are operators.
    pub(crate) operator_uids: Vec<u32>,
    /// Controls that may be missing.
    pub(crate) accept_unavailable: Vec<ControlId>,
    /// Controls that are known to be missing.
    pub(crate) unavailable: Vec<UnavailableControl>,
    /// Whether root started it.
    pub(crate) is_root: bool,
    /// What of all this can be enforced here.
    pub(crate) surveys: Surveys,
}

/// Memory that clients can make us use, in bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Bodies that are coming, and those of calls that have not started.
    pub(crate) bodies: Arc<Shares>,
    /// Answers and output that nobody has taken yet.
    pub(crate) answers: Arc<Shares>,
}

const MIB: u64 = 1024 * 1024;

impl Default for Memory {
    /// A body has at most 4 MiB, an answer that of ordinary output two or three, the largest some hundred.
    fn default() -> Self {
        Self {
            bodies: Shares::new(Bounds { all: 256 * MIB, per_user: 64 * MIB, for_operators: 32 * MIB }),
            answers: Shares::new(Bounds { all: 512 * MIB, per_user: 128 * MIB, for_operators: 64 * MIB }),
        }
    }
}

/// What a client is told about this daemon.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// Version of the program.
    pub(crate) version: String,
    /// Digest of the program, as it was given.
    pub(crate) build: String,
    /// After how much quiet it ends by itself.
    pub(crate) idle_exit: Option<Duration>,
}

/// The ledger, for as far as it may be used.
#[derive(Debug)]
pub(crate) struct Log {
    /// Appends; or why nothing is appended.
    pub(crate) writer: Result<Ledger, LedgerError>,
    /// Reads.
    pub(crate) reader: Arc<Reader>,
    /// The signer's key and memory, as of the start.
    pub(crate) signer: SignerStatus,
    /// That key, to verify with.
    pub(crate) key: PublicKey,
}

impl Daemon {
    /// The ledger, to append to.
    ///
    /// # Errors
    /// `LEDGER_INVALID`, with the first bad index or the failure that stopped it.
    pub(crate) fn ledger(&self) -> Result<&Ledger, Problem> {
        let ledger = self.log.writer.as_ref().map_err(ledger_problem)?;
        match ledger.stopped() {
            Some(cause) => Err(ledger_problem(&cause)),
            None => Ok(ledger),
        }
    }

    /// Whether calls can be taken.
    pub(crate) fn is_ledger_valid(&self) -> bool {
        self.log.writer.as_ref().is_ok_and(|ledger| ledger.stopped().is_none())
    }

    /// Runs a read on a thread where waiting is allowed.
    ///
    /// # Errors
    /// `LEDGER_INVALID` if the database failed.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, Problem> {
        let reader = Arc::clone(&self.log.reader);
        let done = tokio::task::spawn_blocking(move || read(&reader)).await;
        match done {
            Ok(result) => result.map_err(|error| ledger_problem(&error)),
            Err(error) => Err(fault("a read of the ledger did not end", &error)),
        }
    }

    /// The newest attempt of a call: at once where nobody else reads, as a thread of its own takes longer than the look.
    ///
    /// # Errors
    /// As [`Daemon::read`].
    pub(crate) async fn latest(&self, key: CallKey) -> Result<Option<Attempt>, Problem> {
        match self.log.reader.latest_at_once(&key.tenant, key.call_id.as_str()) {
            Some(latest) => latest.map_err(|error| ledger_problem(&error)),
            None => self.read(move |reader| reader.latest(&key.tenant, key.call_id.as_str())).await,
        }
    }

    /// Whether calls may have controls switched off.
    pub(crate) fn ablation(&self) -> Ablation {
        if self.executor.experiment.is_some() { Ablation::Taken } else { Ablation::Refused }
    }

    /// The header of an entry: what follows from its payload, which says all of these, and how long the machine was up,
    /// if it is still the same start of it.
    pub(crate) fn header(&self, executor: &Executor, by: (&str, &str), at: UnixMicros) -> Header {
        let is_this_boot = executor.boot_id == self.executor.boot_id;
        let boot_us = is_this_boot.then(|| micros(self.clock.since_boot()));
        Header { boot_us, ..recovery::header(executor, by, at) }
    }
}

/// What to give the ledger with an append, and what to wait for.
pub(crate) fn completion() -> (DoneFn, impl Future<Output = Result<Committed, Problem>>) {
    let (done, committed) = tokio::sync::oneshot::channel();
    let told: DoneFn = Box::new(move |result| {
        // Nobody waits any more only if the daemon is being torn down.
        drop(done.send(result));
    });
    let heard = async move {
        match committed.await {
            Ok(result) => result.map_err(|error| ledger_problem(&error)),
            Err(error) => Err(fault("the ledger's writer is gone", &error)),
        }
    };
    (told, heard)
}

/// A ledger error as a refusal. What it says is meant for operators and holds nothing of anybody's call but its name.
pub(crate) fn ledger_problem(error: &LedgerError) -> Problem {
    let mut detail = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        detail = format!("{detail}: {next}");
        cause = next.source();
    }
    // Errors of our own closures have no code; the entry was not written, so that the ledger's code is the nearest.
    Problem::new(error.code().unwrap_or(ErrorCode::LedgerInvalid), detail, error.remedy())
}

/// A fault of ours as a refusal: the cause goes to the log, once, here.
pub(crate) fn fault(what: &'static str, cause: &(dyn std::error::Error + 'static)) -> Problem {
    tracing::error!(error = cause, "{what}");
    Problem::new(ErrorCode::LedgerInvalid, format!("{what}; the daemon's log says why"), "report this with the log")
}
