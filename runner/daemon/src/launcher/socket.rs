//! Packets on the launcher's socket, as they go out and come in.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use tokio::io::Interest;
use toolcell_types::CellId;
use toolcell_types::plan::{FromLauncher, PACKET_MAX_BYTES};

use super::{CellEvent, LauncherError, Packet, Shared};

/// Sends until nobody can queue anything any more.
pub(super) fn send_all(
    socket: &OwnedFd,
    packets: &Receiver<Packet>,
    waiting: &AtomicUsize,
) -> Result<(), LauncherError> {
    while let Ok(packet) = packets.recv() {
        while let Err(error) = send_one(socket, &packet, SendFlags::DONTWAIT) {
            if !is_full(&error) {
                return Err(error);
            }
            wait_for_room(socket)?;
        }
        waiting.fetch_sub(1, Ordering::AcqRel);
    }
    Ok(())
}

/// Whether there is only no room now.
pub(super) fn is_full(error: &LauncherError) -> bool {
    matches!(error, LauncherError::Socket { source, .. } if source.kind() == std::io::ErrorKind::WouldBlock)
}

fn wait_for_room(socket: &OwnedFd) -> Result<(), LauncherError> {
    let mut wanted = [PollFd::new(socket, PollFlags::OUT)];
    match poll(&mut wanted, None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(LauncherError::Socket { doing: "wait for room", source: errno.into() }),
    }
}

/// A SEQPACKET socket takes a packet whole or not at all (unix(7)).
pub(super) fn send_one(socket: &OwnedFd, packet: &Packet, flags: SendFlags) -> Result<(), LauncherError> {
    let descriptors: Vec<_> = packet.descriptors.iter().map(OwnedFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(LauncherError::Protocol { rule: "a packet has at most two descriptors" });
    }
    let parts = [IoSlice::new(&packet.bytes)];
    rustix::io::retry_on_intr(|| rustix::net::sendmsg(socket, &parts, &mut control, flags | SendFlags::NOSIGNAL))
        .map(drop)
        .map_err(|errno| LauncherError::Socket { doing: "send", source: errno.into() })
}

/// Receives until the socket ends, which is an error like every other.
pub(super) async fn receive_all(socket: &tokio::net::UnixDatagram, shared: &Shared) -> Result<(), LauncherError> {
    let failed = |source| LauncherError::Socket { doing: "receive", source };
    let mut buffer = vec![0_u8; PACKET_MAX_BYTES];
    loop {
        socket.readable().await.map_err(failed)?;
        match socket.try_io(Interest::READABLE, || receive(socket, &mut buffer)) {
            Ok(received) => {
                let (id, event) = received?;
                shared.deliver(id, event)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// One packet. The outer error is the socket's, and may be that there is nothing now.
fn receive(
    socket: &tokio::net::UnixDatagram,
    buffer: &mut [u8],
) -> std::io::Result<Result<(CellId, CellEvent), LauncherError>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::io::retry_on_intr(|| rustix::net::recvmsg(socket, &mut parts, &mut control, flags))?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(Err(LauncherError::Gone));
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Ok(Err(LauncherError::Protocol { rule: "a packet fits into 192 KiB and two descriptors" }));
    }
    let bytes = buffer.get(..received.bytes).unwrap_or_default();
    let message = postcard::from_bytes(bytes).map_err(|source| LauncherError::Encoding { source });
    Ok(message.and_then(|message| event(message, descriptors)))
}

/// A message with its descriptors: two when it is armed, none at the end.
fn event(message: FromLauncher, descriptors: Vec<OwnedFd>) -> Result<(CellId, CellEvent), LauncherError> {
    let mut descriptors = descriptors.into_iter();
    let pipes = (descriptors.next(), descriptors.next(), descriptors.next());
    match (message, pipes) {
        (FromLauncher::Armed { cell, controls }, (Some(stdout), Some(stderr), None)) => {
            Ok((cell, CellEvent::Armed { controls, stdout, stderr }))
        }
        (FromLauncher::Begun { cell, requested }, (None, ..)) => Ok((cell, CellEvent::Begun { requested })),
        (FromLauncher::Refused { cell, fault, tree_gone }, (None, ..)) => {
            Ok((cell, CellEvent::Refused { fault, tree_gone }))
        }
        (FromLauncher::Ended { cell, report }, (None, ..)) => Ok((cell, CellEvent::Ended { report })),
        (FromLauncher::Seen { cell, host }, (None, ..)) => Ok((cell, CellEvent::Seen { host: Box::new(host) })),
        _other => Err(LauncherError::Protocol { rule: "an armed cell comes with two descriptors, an end with none" }),
    }
}
