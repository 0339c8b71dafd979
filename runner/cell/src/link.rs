//! The socket to the daemon: packets with descriptors, never blocking, as timers must fire while the daemon is stopped.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use toolcell_types::plan::{FromLauncher, PACKET_MAX_BYTES};
use zeroize::Zeroize as _;

use crate::wiped::Wiped;

/// Why the link is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The daemon has closed its end.
    #[error("the daemon closed its socket")]
    Closed,
    /// The socket failed.
    #[error("the socket to the daemon failed")]
    Socket {
        /// The kernel's answer.
        #[source]
        source: Errno,
    },
    /// It asks without ever reading the answers.
    #[error("the daemon does not read what it is sent")]
    Unread,
    /// A packet was cut, or is no message.
    #[error("the daemon sent what is no message: {what}")]
    Protocol {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A message could not be encoded.
    #[error("a message to the daemon cannot be encoded")]
    Encode {
        /// postcard's word.
        #[source]
        source: postcard::Error,
    },
}

/// Room for a message of ours: 29 controls with their facts make some ten KiB.
const SENT_BYTES: usize = 32 * 1024;
/// Most descriptors that one packet carries.
const FDS_MAX: usize = 4;

#[derive(Debug)]
struct Packet {
    bytes: Wiped,
    fds: Vec<OwnedFd>,
}

/// The launcher's end.
#[derive(Debug)]
pub(crate) struct Link {
    socket: OwnedFd,
    inbox: Vec<u8>,
    filled: usize,
    outbox: VecDeque<Packet>,
}

impl Link {
    /// Takes the socket over and makes it non-blocking.
    pub(crate) fn new(socket: OwnedFd) -> Result<Self, LinkError> {
        rustix::io::ioctl_fionbio(&socket, true).map_err(|source| LinkError::Socket { source })?;
        Ok(Self { socket, inbox: vec![0; PACKET_MAX_BYTES], filled: 0, outbox: VecDeque::new() })
    }

    /// The descriptor to poll.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether there is something that the socket had no room for.
    pub(crate) fn wants_to_send(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// How many messages the daemon has not taken yet.
    pub(crate) fn waiting(&self) -> usize {
        self.outbox.len()
    }

    /// Receives one packet; `None` if there is none now. Read it with [`Link::packet`], then [`Link::wipe`] it.
    pub(crate) fn receive(&mut self) -> Result<Option<Vec<OwnedFd>>, LinkError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let message = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut self.inbox)], &mut control, flags) {
            Ok(message) => message,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(Errno::CONNRESET) => return Err(LinkError::Closed),
            Err(source) => return Err(LinkError::Socket { source }),
        };
        let mut fds = Vec::new();
        for item in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = item {
                fds.extend(rights);
            }
        }
        if message.bytes == 0 {
            return Err(LinkError::Closed);
        }
        if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(LinkError::Protocol { what: "a packet larger than agreed" });
        }
        self.filled = message.bytes;
        Ok(Some(fds))
    }

    /// The packet that was received last.
    pub(crate) fn packet(&self) -> &[u8] {
        self.inbox.get(..self.filled).unwrap_or_default()
    }

    /// Forgets it: the next cell is a copy of this memory and must not find another tenant's paths in it.
    pub(crate) fn wipe(&mut self) {
        if let Some(bytes) = self.inbox.get_mut(..self.filled) {
            bytes.zeroize();
        }
        self.filled = 0;
    }

    /// Sends, or keeps for later in order.
    pub(crate) fn send(&mut self, message: &FromLauncher, fds: Vec<OwnedFd>) -> Result<(), LinkError> {
        // Room for all of it at once: a vector that grows leaves copies behind.
        let bytes = postcard::to_extend(message, Vec::with_capacity(SENT_BYTES))
            .map_err(|source| LinkError::Encode { source })?;
        self.outbox.push_back(Packet { bytes: Wiped::new(bytes), fds });
        self.flush()
    }

    /// Sends what is waiting as far as there is room.
    pub(crate) fn flush(&mut self) -> Result<(), LinkError> {
        while let Some(packet) = self.outbox.front() {
            let borrowed: Vec<BorrowedFd<'_>> = packet.fds.iter().map(|fd| fd.as_fd()).collect();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !borrowed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
                return Err(LinkError::Protocol { what: "too many descriptors in one message" });
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match sendmsg(&self.socket, &[IoSlice::new(&packet.bytes)], &mut control, flags) {
                Ok(_) => {
                    drop(self.outbox.pop_front());
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(LinkError::Closed),
                Err(source) => return Err(LinkError::Socket { source }),
            }
        }
        Ok(())
    }
}
