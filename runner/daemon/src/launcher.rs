//! The daemon's end of the launcher's socket: plans and kills out, what became of the cells in.
//!
//! One thread does nothing but recvmsg(2), one nothing but sendmsg(2), so that no task waits for the launcher, which
//! builds one cell at a time. Guarantees: each cell has a channel of its own, on which its two messages come; a message
//! that does not fit the protocol, or the end of the socket, ends the connection for good, and every waiting cell
//! hears so. Does not: decide anything, restart anything.

use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolcell_types::doctor::HostFacts;
use toolcell_types::plan::{EndReport, FromLauncher, KillReason, LaunchFault, PACKET_MAX_BYTES, ToLauncher};
use toolcell_types::{CellId, ControlReport};

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
    queue: SyncSender<Packet>,
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
    /// Takes over the SEQPACKET socket and starts the two threads.
    ///
    /// # Errors
    /// [`LauncherError::Thread`].
    pub(crate) fn connect(socket: OwnedFd) -> Result<Arc<Self>, LauncherError> {
        let socket = Arc::new(socket);
        let shared = Arc::new(Shared::default());
        let (queue, packets) = sync_channel(QUEUE_MAX);
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let (theirs, sending) = (Arc::clone(&shared), Arc::clone(&socket));
        let sender = thread("to-launcher").spawn(move || theirs.fail(send_all(&sending, &packets)));
        let theirs = Arc::clone(&shared);
        let receiver = thread("from-launcher").spawn(move || theirs.fail(receive_all(&socket, &theirs)));
        for started in [sender, receiver] {
            // The threads end with the process; nothing is lost with them that the ledger does not hold.
            drop(started.map_err(|source| LauncherError::Thread { source })?);
        }
        Ok(Arc::new(Self { shared, queue, next_cell: AtomicU64::new(1) }))
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
        // Three events cannot come (armed and one end), so that the receiving thread never waits for a task.
        let (sender, events) = mpsc::channel(2);
        self.shared.cells().insert(id, sender);
        let cell = Cell { id, events, launcher: Arc::clone(self), is_over: false };
        self.send(packet)?;
        // Had the connection failed before the insertion, nobody would tell this cell.
        if self.shared.failed.is_cancelled() { Err(LauncherError::Gone) } else { Ok(cell) }
    }

    fn send(&self, packet: Packet) -> Result<(), LauncherError> {
        self.queue.try_send(packet).map_err(|refused| match refused {
            TrySendError::Full(_) => LauncherError::Stuck,
            TrySendError::Disconnected(_) => LauncherError::Gone,
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
        self.is_over = !matches!(event, Some(CellEvent::Armed { .. }));
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
            CellEvent::Armed { .. } => cells.get(&id).cloned(),
            CellEvent::Refused { .. } | CellEvent::Ended { .. } | CellEvent::Seen { .. } => cells.remove(&id),
        };
        drop(cells);
        match sender.map(|sender| sender.try_send(event)) {
            Some(Err(mpsc::error::TrySendError::Full(_))) => {
                Err(LauncherError::Protocol { rule: "a cell is armed once and ends once" })
            }
            Some(Ok(()) | Err(mpsc::error::TrySendError::Closed(_))) | None => Ok(()),
        }
    }
}

/// Sends until nobody can queue anything any more.
fn send_all(socket: &OwnedFd, packets: &Receiver<Packet>) -> Result<(), LauncherError> {
    while let Ok(packet) = packets.recv() {
        let descriptors: Vec<_> = packet.descriptors.iter().map(OwnedFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(LauncherError::Protocol { rule: "a packet has at most two descriptors" });
        }
        let parts = [IoSlice::new(&packet.bytes)];
        // A SEQPACKET socket takes a packet whole or not at all (unix(7)).
        rustix::io::retry_on_intr(|| rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL))
            .map_err(|errno| LauncherError::Socket { doing: "send", source: errno.into() })?;
    }
    Ok(())
}

/// Receives until the socket ends, which is an error like every other.
fn receive_all(socket: &OwnedFd, shared: &Shared) -> Result<(), LauncherError> {
    let mut buffer = vec![0_u8; PACKET_MAX_BYTES];
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let received = match rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => received,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(LauncherError::Socket { doing: "receive", source: errno.into() }),
        };
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes == 0 {
            return Err(LauncherError::Gone);
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(LauncherError::Protocol { rule: "a packet fits into 192 KiB and two descriptors" });
        }
        let bytes = buffer.get(..received.bytes).unwrap_or_default();
        let message = postcard::from_bytes(bytes).map_err(|source| LauncherError::Encoding { source })?;
        let (id, event) = event(message, descriptors)?;
        shared.deliver(id, event)?;
    }
}

/// A message with its descriptors: two when it is armed, none at the end.
fn event(message: FromLauncher, descriptors: Vec<OwnedFd>) -> Result<(CellId, CellEvent), LauncherError> {
    let mut descriptors = descriptors.into_iter();
    let pipes = (descriptors.next(), descriptors.next(), descriptors.next());
    match (message, pipes) {
        (FromLauncher::Armed { cell, controls }, (Some(stdout), Some(stderr), None)) => {
            Ok((cell, CellEvent::Armed { controls, stdout, stderr }))
        }
        (FromLauncher::Refused { cell, fault, tree_gone }, (None, ..)) => {
            Ok((cell, CellEvent::Refused { fault, tree_gone }))
        }
        (FromLauncher::Ended { cell, report }, (None, ..)) => Ok((cell, CellEvent::Ended { report })),
        (FromLauncher::Seen { cell, host }, (None, ..)) => Ok((cell, CellEvent::Seen { host: Box::new(host) })),
        _other => Err(LauncherError::Protocol { rule: "an armed cell comes with two descriptors, an end with none" }),
    }
}

#[cfg(test)]
mod tests;
