//! The daemon's end of the launcher's socket: plans and kills out, what became of the cells in.
//!
//! One task does nothing but receive. What is sent goes out at once where the socket has room, else by a thread that does
//! nothing else, so that no task waits for the launcher, which builds one cell at a time. Guarantees: each cell has a channel of its own, on which its two messages come; a message
//! that does not fit the protocol, or the end of the socket, ends the connection for good, and every waiting cell
//! hears so. Does not: decide anything, restart anything.

mod socket;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::net::SendFlags;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolcell_types::Facts;
use toolcell_types::doctor::HostFacts;
use toolcell_types::plan::{EndReport, KillReason, LaunchFault, PACKET_MAX_BYTES, ToLauncher};
use toolcell_types::{CellId, ControlReport};

use self::socket::{is_full, receive_all, send_all, send_one};

/// Messages that wait to be sent. A cell is armed, let go and killed for at most three reasons, so that only a launcher that has stopped
/// reading can fill it.
const QUEUE_MAX: usize = 512;

/// Why the launcher cannot be used any more.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// It closed the socket.
    #[error("the launcher is gone")]
    Gone,
    /// The socket failed.
    #[error("the launcher's socket failed to {doing}")]
    Socket {
        /// `send` or `receive`.
        doing: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A message could not be encoded or decoded.
    #[error("a message of the launcher's socket makes no sense")]
    Encoding {
        /// What postcard said.
        source: postcard::Error,
    },
    /// A message was cut off, or came with the wrong descriptors.
    #[error("the launcher broke the protocol: {rule}")]
    Protocol {
        /// Which rule.
        rule: &'static str,
    },
    /// It does not take what it is sent.
    #[error("the launcher has not read {QUEUE_MAX} messages")]
    Stuck,
    /// A thread could not be started.
    #[error("no thread for the launcher's socket")]
    Thread {
        /// What the kernel said.
        source: std::io::Error,
    },
}

/// A packet that was encoded, with its descriptors.
#[derive(Debug)]
pub(crate) struct Packet {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Packet {
    /// Encodes a message. A plan comes with the *go* memfd, and with that of standard input if there is one.
    ///
    /// # Errors
    /// It is larger than a packet may be.
    pub(crate) fn new(message: &ToLauncher<'_>, descriptors: Vec<OwnedFd>) -> Result<Self, LauncherError> {
        let bytes = postcard::to_stdvec(message).map_err(|source| LauncherError::Encoding { source })?;
        if bytes.len() > PACKET_MAX_BYTES {
            return Err(LauncherError::Protocol { rule: "a packet has at most 192 KiB" });
        }
        Ok(Self { bytes, descriptors })
    }
}

/// What is heard of a cell.
#[derive(Debug)]
pub(crate) enum CellEvent {
    /// It is being set up. Not every cell is told of.
    Begun {
        /// What each control is asked for, in their order.
        requested: Vec<Facts>,
    },
    /// All controls were seen to hold, and the tool waits to be let go.
    Armed {
        /// All controls, as they were seen.
        controls: Vec<ControlReport>,
        /// Read end of standard output.
        stdout: OwnedFd,
        /// Read end of standard error.
        stderr: OwnedFd,
    },
    /// The tool never ran; the last event.
    Refused {
        /// Why.
        fault: LaunchFault,
        /// Whether nothing of the cell is left.
        tree_gone: bool,
    },
    /// It is over; the last event.
    Ended {
        /// What was seen.
        report: EndReport,
    },
    /// What the host is like; the only event of a look.
    Seen {
        /// As the launcher sees it.
        host: Box<HostFacts>,
    },
}

/// The connection.
#[derive(Debug)]
pub(crate) struct Launcher {
    shared: Arc<Shared>,
    socket: Arc<OwnedFd>,
    outbox: Mutex<SyncSender<Packet>>,
    /// Packets in the outbox that are not sent yet.
    waiting: Arc<AtomicUsize>,
    next_cell: AtomicU64,
}

/// What the threads and the tasks share.
#[derive(Debug, Default)]
struct Shared {
    cells: Mutex<HashMap<CellId, mpsc::Sender<CellEvent>>>,
    failure: OnceLock<Arc<LauncherError>>,
    failed: CancellationToken,
}

impl Launcher {
    /// Takes over the SEQPACKET socket and starts who receives and who sends. Must be called within the runtime.
    ///
    /// # Errors
    /// [`LauncherError::Thread`], [`LauncherError::Socket`].
    pub(crate) fn connect(socket: OwnedFd) -> Result<Arc<Self>, LauncherError> {
        let unusable = |source| LauncherError::Socket { doing: "be used", source };
        // Only for its readiness: the standard library has no type for SEQPACKET, and asks for none.
        let readable = UnixDatagram::from(socket.try_clone().map_err(unusable)?);
        readable.set_nonblocking(true).map_err(unusable)?;
        let readable = tokio::net::UnixDatagram::from_std(readable).map_err(unusable)?;
        let socket = Arc::new(socket);
        let shared = Arc::new(Shared::default());
        let (outbox, packets) = sync_channel(QUEUE_MAX);
        let waiting = Arc::new(AtomicUsize::new(0));
        let (theirs, sending, unsent) = (Arc::clone(&shared), Arc::clone(&socket), Arc::clone(&waiting));
        let sender = std::thread::Builder::new().name("to-launcher".to_owned());
        let sender = sender.spawn(move || theirs.fail(send_all(&sending, &packets, &unsent)));
        let theirs = Arc::clone(&shared);
        let receiver = tokio::spawn(async move { theirs.fail(receive_all(&readable, &theirs).await) });
        // Both end with the process; nothing is lost with them that the ledger does not hold.
        drop((sender.map_err(|source| LauncherError::Thread { source })?, receiver));
        Ok(Arc::new(Self { shared, socket, outbox: Mutex::new(outbox), waiting, next_cell: AtomicU64::new(1) }))
    }

    /// A number that no cell of this daemon's life had before.
    pub(crate) fn next_cell(&self) -> CellId {
        CellId(self.next_cell.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a plan and returns where the cell's events come.
    ///
    /// # Errors
    /// The launcher is gone or stuck; then no cell was asked for.
    pub(crate) fn arm(self: &Arc<Self>, id: CellId, packet: Packet) -> Result<Cell, LauncherError> {
        // A fourth event cannot come (begun, armed and one end), so that the receiving task never waits for another.
        let (sender, events) = mpsc::channel(3);
        self.shared.cells().insert(id, sender);
        let cell = Cell { id, events, launcher: Arc::clone(self), is_over: false };
        self.send(packet)?;
        // Had the connection failed before the insertion, nobody would tell this cell.
        if self.shared.failed.is_cancelled() { Err(LauncherError::Gone) } else { Ok(cell) }
    }

    /// At once, unless the socket is full or something else waits for it: packets keep their order.
    fn send(&self, packet: Packet) -> Result<(), LauncherError> {
        // One at a time. A panic elsewhere leaves nothing half done here: a packet is sent whole or not at all.
        let outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
        if self.waiting.load(Ordering::Acquire) == 0 {
            match send_one(&self.socket, &packet, SendFlags::DONTWAIT) {
                Err(error) if is_full(&error) => {}
                // The threads notice as well, and tell everybody.
                Err(LauncherError::Socket { .. }) => return Err(LauncherError::Gone),
                other => return other,
            }
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        outbox.try_send(packet).map_err(|refused| {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            match refused {
                TrySendError::Full(_) => LauncherError::Stuck,
                TrySendError::Disconnected(_) => LauncherError::Gone,
            }
        })
    }

    /// Waits until the connection has failed.
    pub(crate) async fn failed(&self) {
        self.shared.failed.cancelled().await;
    }

    /// Why it failed, if it did.
    pub(crate) fn failure(&self) -> Option<Arc<LauncherError>> {
        self.shared.failure.get().cloned()
    }
}

/// One cell, as long as somebody waits for it. Dropping it before its end has it killed.
#[derive(Debug)]
pub(crate) struct Cell {
    id: CellId,
    is_over: bool,
    events: mpsc::Receiver<CellEvent>,
    launcher: Arc<Launcher>,
}

impl Cell {
    /// The next event; none when the launcher is gone.
    pub(crate) async fn next(&mut self) -> Option<CellEvent> {
        let event = self.events.recv().await;
        self.is_over = !matches!(event, Some(CellEvent::Begun { .. } | CellEvent::Armed { .. }));
        event
    }

    /// Lets the tool go.
    ///
    /// # Errors
    /// The launcher is gone or stuck.
    pub(crate) fn go(&self) -> Result<(), LauncherError> {
        self.launcher.send(Packet::new(&ToLauncher::Go { cell: self.id }, Vec::new())?)
    }

    /// Asks for the tree to be killed. The end comes as an event.
    ///
    /// # Errors
    /// The launcher is gone or stuck.
    pub(crate) fn kill(&self, reason: KillReason) -> Result<(), LauncherError> {
        self.launcher.send(Packet::new(&ToLauncher::Kill { cell: self.id, reason }, Vec::new())?)
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.launcher.shared.cells().remove(&self.id);
        if !self.is_over
            && let Err(error) = self.kill(KillReason::Cancelled)
        {
            // Then the launcher is gone, and the cell with it, or the connection is about to be given up.
            tracing::warn!(cell = %self.id, error = &error as &dyn std::error::Error, "a cell that nobody waits for could not be killed");
        }
    }
}

impl Shared {
    /// The map is whole after every operation on it, so that a panic elsewhere does not matter here.
    fn cells(&self) -> MutexGuard<'_, HashMap<CellId, mpsc::Sender<CellEvent>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the first failure and lets every cell know, by closing its channel.
    fn fail(&self, result: Result<(), LauncherError>) {
        if let Err(error) = result {
            let first = self.failure.get_or_init(|| Arc::new(error));
            tracing::error!(error = &**first as &dyn std::error::Error, "the connection to the launcher has ended");
            self.failed.cancel();
            self.cells().clear();
        }
    }

    /// Gives the event to its cell. A cell that nobody waits for any more is passed over.
    fn deliver(&self, id: CellId, event: CellEvent) -> Result<(), LauncherError> {
        let mut cells = self.cells();
        let sender = match event {
            CellEvent::Begun { .. } | CellEvent::Armed { .. } => cells.get(&id).cloned(),
            CellEvent::Refused { .. } | CellEvent::Ended { .. } | CellEvent::Seen { .. } => cells.remove(&id),
        };
        drop(cells);
        match sender.map(|sender| sender.try_send(event)) {
            Some(Err(mpsc::error::TrySendError::Full(_))) => {
                Err(LauncherError::Protocol { rule: "a cell begins once, is armed once and ends once" })
            }
            Some(Ok(()) | Err(mpsc::error::TrySendError::Closed(_))) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
