//! Records from inside, each with the number of the process that sent it, as the kernel has it.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::record::RECORD_BYTES;

/// One packet: how many bytes were filled, and who sent it (SO_PASSCRED, unix(7)): a number of this pid namespace that
/// the sender cannot choose.
pub(super) fn receive(control: &OwnedFd, bytes: &mut [u8; RECORD_BYTES]) -> rustix::io::Result<(usize, Option<i32>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let message = rustix::io::retry_on_intr(|| recvmsg(control, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags))?;
    let mut sender = None;
    for item in ancillary.drain() {
        if let RecvAncillaryMessage::ScmCredentials(credentials) = item {
            sender = Some(credentials.pid.as_raw_nonzero().get());
        }
    }
    Ok((message.bytes, sender))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

    #[test]
    fn a_record_comes_with_the_number_of_its_sender() {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::sockopt::set_socket_passcred(&ours, true).unwrap();
        let _sent = rustix::net::send(&theirs, &[7; RECORD_BYTES], SendFlags::empty()).unwrap();
        let mut bytes = [0; RECORD_BYTES];
        let (filled, sender) = receive(&ours, &mut bytes).unwrap();
        assert_eq!((filled, bytes), (RECORD_BYTES, [7; RECORD_BYTES]));
        assert_eq!(sender, i32::try_from(std::process::id()).ok());
    }
}
