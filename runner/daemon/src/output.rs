//! The two output streams of one attempt: read to the end, hashed, counted, capped, and shown to whoever follows.
//!
//! Guarantees: every byte that is read is hashed and counted; memory per stream stays within `output_keep_bytes` and a
//! window (see [`kept`]); more than `output_limit_bytes` of both together is noticed at once, and from then on the
//! pipes are left alone until the tree is dead, so that no flood outruns the kill; a follower gets every byte in order,
//! a slow one stalls the pipe until the attempt ends, one that is gone stalls nothing. Does not: kill anything (the
//! supervisor waits for [`Output::exceeded`]), interpret output or log it.

mod kept;
mod pump;
#[cfg(test)]
mod tests;
mod utf8;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolcell_types::Limits;

pub(crate) use kept::Captured;
use kept::{Kept, Piece, WINDOW_BYTES};

/// How long a place that was reserved for a follower waits for it.
pub(crate) const RESERVATION: Duration = Duration::from_secs(10);
/// How long the pipes may take to end once the launcher said that the attempt is over. They end at once when the tree
/// is gone; a tree that could not be killed may hold them open for ever.
const DRAIN: Duration = Duration::from_secs(5);

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StreamName {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

impl StreamName {
    /// The name in paths and answers.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Both streams at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CapturedOutput {
    /// Standard output.
    pub(crate) stdout: Captured,
    /// Standard error.
    pub(crate) stderr: Captured,
    /// Whether both together were more than `output_limit_bytes`.
    pub(crate) is_over_limit: bool,
    /// Streams that were not read to their end, and why: digest and size are then of what was read.
    pub(crate) unread: Vec<(StreamName, String)>,
}

/// The output of one attempt, from before its start to its end.
pub(crate) struct Output {
    stdout: Stream,
    stderr: Stream,
    limit_bytes: u64,
    read_bytes: AtomicU64,
    exceeded: CancellationToken,
    ended: CancellationToken,
}

impl Output {
    /// Streams that nothing has come from yet.
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            stdout: Stream::new(limits.output_keep_bytes),
            stderr: Stream::new(limits.output_keep_bytes),
            limit_bytes: limits.output_limit_bytes,
            read_bytes: AtomicU64::new(0),
            exceeded: CancellationToken::new(),
            ended: CancellationToken::new(),
        })
    }

    /// Reads both pipes until [`Reading::finish`]. Must be called within the runtime, at most once.
    ///
    /// # Errors
    /// A descriptor is no pipe, or cannot be registered.
    pub(crate) fn start(self: &Arc<Self>, stdout: OwnedFd, stderr: OwnedFd) -> std::io::Result<Reading> {
        Ok(Reading {
            output: Arc::clone(self),
            stdout: pump::start(Arc::clone(self), StreamName::Stdout, stdout)?,
            stderr: pump::start(Arc::clone(self), StreamName::Stderr, stderr)?,
        })
    }

    /// Waits until both streams together were more than `output_limit_bytes`; for ever if they never are.
    pub(crate) async fn exceeded(&self) {
        self.exceeded.cancelled().await;
    }

    /// Keeps a place at the first byte of both streams for [`RESERVATION`]: meanwhile no byte gets lost, and the tool
    /// waits once the window is full.
    pub(crate) fn reserve(self: &Arc<Self>) {
        for stream in [&self.stdout, &self.stderr] {
            let mut state = stream.lock();
            state.reserved = state.kept.admit_reader();
        }
        let output = Arc::clone(self);
        let waiting = tokio::spawn(async move {
            tokio::time::sleep(RESERVATION).await;
            output.expire_reservations();
        });
        drop(waiting);
    }

    fn expire_reservations(&self) {
        for stream in [&self.stdout, &self.stderr] {
            let reserved = stream.lock().reserved.take();
            if let Some(reader) = reserved {
                stream.dismiss(reader);
            }
        }
    }

    /// Whether somebody is still expected.
    pub(crate) fn has_reservation(&self) -> bool {
        [&self.stdout, &self.stderr].into_iter().any(|stream| stream.lock().reserved.is_some())
    }

    /// A reader of the whole stream from its first byte, or none when that is no longer kept.
    pub(crate) fn follow(self: &Arc<Self>, name: StreamName) -> Option<Follower> {
        let mut state = self.stream(name).lock();
        let reserved = state.reserved.take();
        let reader = reserved.or_else(|| state.kept.admit_reader())?;
        drop(state);
        Some(Follower { output: Arc::clone(self), name, reader })
    }

    /// What is kept of a stream by now.
    pub(crate) fn captured(&self, name: StreamName) -> Captured {
        self.stream(name).lock().kept.capture()
    }

    /// No byte will come: the cell was never started, or is over.
    pub(crate) fn close(&self) {
        self.ended.cancel();
        self.stdout.close();
        self.stderr.close();
    }

    /// Whether no byte will come.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    fn stream(&self, name: StreamName) -> &Stream {
        match name {
            StreamName::Stdout => &self.stdout,
            StreamName::Stderr => &self.stderr,
        }
    }

    /// Adds to what was read; above the limit, says so.
    fn count(&self, bytes: u64) {
        let before = self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.limit_bytes {
            self.exceeded.cancel();
        }
    }

    fn is_over_limit(&self) -> bool {
        self.exceeded.is_cancelled()
    }
}

impl std::fmt::Debug for Output {
    /// Never the output itself.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("read_bytes", &self.read_bytes).finish_non_exhaustive()
    }
}

/// Both pipes while they are read.
#[derive(Debug)]
pub(crate) struct Reading {
    output: Arc<Output>,
    stdout: pump::Pump,
    stderr: pump::Pump,
}

impl Reading {
    /// The attempt is over: reads what is left in the pipes and returns what was captured. Nobody stalls it any more.
    pub(crate) async fn finish(self) -> CapturedOutput {
        self.output.ended.cancel();
        let (stdout, stderr) = tokio::join!(self.stdout.finish(DRAIN), self.stderr.finish(DRAIN));
        self.output.close();
        let whys = [(StreamName::Stdout, stdout), (StreamName::Stderr, stderr)];
        CapturedOutput {
            unread: whys.into_iter().filter_map(|(name, why)| Some((name, why?))).collect(),
            stdout: self.output.captured(StreamName::Stdout),
            stderr: self.output.captured(StreamName::Stderr),
            is_over_limit: self.output.is_over_limit(),
        }
    }
}

/// One stream and those who wait for it.
struct Stream {
    state: Mutex<StreamState>,
    /// Bytes came, or the end.
    grown: Notify,
    /// A reader read, or left.
    read: Notify,
}

struct StreamState {
    kept: Kept,
    reserved: Option<u64>,
}

impl Stream {
    fn new(keep_bytes: u64) -> Self {
        let state = Mutex::new(StreamState { kept: Kept::new(keep_bytes), reserved: None });
        Self { state, grown: Notify::new(), read: Notify::new() }
    }

    /// Nothing panics while holding the lock, and a half-done append would only make the digest wrong for a call whose
    /// task is gone with the panic.
    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, chunk: &[u8], force: bool) -> bool {
        let is_taken = self.lock().kept.append(chunk, force);
        if is_taken {
            self.grown.notify_waiters();
        }
        is_taken
    }

    fn close(&self) {
        self.lock().kept.close();
        self.grown.notify_waiters();
    }

    fn dismiss(&self, reader: u64) {
        if self.lock().kept.dismiss_reader(reader) {
            self.read.notify_waiters();
            self.grown.notify_waiters();
        }
    }
}

/// Somebody who reads along. Dropping it lets the stream go on without it.
#[derive(Debug)]
pub(crate) struct Follower {
    output: Arc<Output>,
    name: StreamName,
    reader: u64,
}

impl Follower {
    /// The next bytes, at most one window of them; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let stream = self.output.stream(self.name);
        loop {
            // Made before the look, so that no notification is lost between the two (Notify::notify_waiters).
            let grown = stream.grown.notified();
            let piece = stream.lock().kept.read(self.reader, WINDOW_BYTES);
            match piece {
                Piece::Bytes(bytes) => {
                    stream.read.notify_waiters();
                    return Some(bytes.into());
                }
                Piece::End => return None,
                Piece::Nothing => grown.await,
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.output.stream(self.name).dismiss(self.reader);
    }
}
