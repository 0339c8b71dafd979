//! One message in, one message out, until the daemon closes its end.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use toolcell_receipts::dsse;
use toolcell_types::signing::{FromSigner, GROUP_MAX, MESSAGE_MAX_BYTES, ToSigner};

use crate::SignerError;
use crate::check::{check, check_length};
use crate::folder::Folder;
use crate::key::ReceiptKey;
use crate::memory::{Memory, Remembered};

/// What the signer starts with.
#[derive(Debug)]
pub struct SignerConfig {
    /// Its directory, of its own user, 0700.
    pub state: OwnedFd,
    /// A stream socket whose other end the daemon holds.
    pub socket: OwnedFd,
    /// Whether this is an instance in ablation mode: then all that is signed says so, else nothing that does is signed.
    pub is_ablation: bool,
}

/// Serves until the socket is closed. Makes key and memory on the first start.
///
/// # Errors
/// [`SignerError`]; nothing may be signed any more, and the instance has to end.
pub fn run(config: SignerConfig) -> Result<(), SignerError> {
    let folder = Folder::new(config.state)?;
    let (key, memory) = open(&folder)?;
    key.publish(&folder)?;
    let mut desk = Desk { public_pem: key.public_pem()?, key, memory, is_ablation: config.is_ablation };
    tracing::info!(keyid = %desk.key.id().hex(), next_index = desk.memory.now().next_index, "signer ready");
    let mut socket = UnixStream::from(config.socket);
    while let Some(message) = receive(&mut socket)? {
        let (request, rest) = postcard::take_from_bytes(&message)
            .map_err(|source| SignerError::Encoding { what: "a message from the daemon", source })?;
        if !rest.is_empty() {
            return Err(SignerError::Length { got: message.len(), most: message.len().saturating_sub(rest.len()) });
        }
        send(&mut socket, &desk.answer(request)?)?;
    }
    Ok(())
}

/// Key and memory go together. The key's file is made last, so that a key is never without its memory.
fn open(folder: &Folder) -> Result<(ReceiptKey, Memory), SignerError> {
    match ReceiptKey::load(folder)? {
        Some(key) => {
            let memory = Memory::load(folder)?.ok_or(SignerError::Memory { what: "gone" })?;
            if memory.now().keyid != key.id().0 {
                return Err(SignerError::Memory { what: "that of another key" });
            }
            Ok((key, memory))
        }
        None => {
            // Without a key, files that are not whole are what an interrupted first start left: nothing was signed.
            let left = match Memory::load(folder) {
                Ok(left) => left.map_or(0, |memory| memory.now().next_index),
                Err(SignerError::Memory { .. }) => 0,
                Err(other) => return Err(other),
            };
            if left > 0 {
                return Err(SignerError::KeyLost { entries: left });
            }
            let key = ReceiptKey::generate()?;
            let memory = Memory::create(folder, Remembered::nothing(key.id()))?;
            key.save(folder)?;
            Ok((key, memory))
        }
    }
}

struct Desk {
    key: ReceiptKey,
    memory: Memory,
    public_pem: String,
    is_ablation: bool,
}

impl Desk {
    fn answer(&mut self, request: ToSigner) -> Result<FromSigner, SignerError> {
        match request {
            ToSigner::Status => Ok(FromSigner::Status(self.memory.now().status(&self.public_pem))),
            ToSigner::Sign { payloads } => self.sign(payloads),
        }
    }

    /// All of a group or nothing of it: checked first, then signed, then remembered, then answered.
    fn sign(&mut self, payloads: Vec<Vec<u8>>) -> Result<FromSigner, SignerError> {
        if payloads.is_empty() || payloads.len() > GROUP_MAX {
            let got = if payloads.is_empty() { "none" } else { "more" };
            let detail = format!("a group has 1 to {GROUP_MAX} payloads, this one has {got}");
            return Ok(FromSigner::Refused { at: 0, detail });
        }
        for (at, payload) in (0_u32..).zip(&payloads) {
            if let Err(refusal) = check_length(payload) {
                return Ok(FromSigner::Refused { at, detail: refusal.to_string() });
            }
        }
        let now = self.memory.now();
        let mut next = Remembered {
            keyid: now.keyid,
            next_index: now.next_index,
            last_leaf: now.last_leaf,
            genesis: now.genesis,
            last_group: Vec::new(),
        };
        for (at, payload) in (0_u32..).zip(&payloads) {
            if let Err(refusal) = check(payload, (&next.position(), self.is_ablation), self.key.id()) {
                return Ok(FromSigner::Refused { at, detail: refusal.to_string() });
            }
            let leaf = dsse::leaf(payload).0;
            next.next_index = next.next_index.saturating_add(1);
            next.last_leaf = leaf;
            next.genesis = next.genesis.or(Some(leaf));
        }
        let signatures: Vec<Vec<u8>> = payloads.iter().map(|payload| self.key.sign(payload).to_vec()).collect();
        next.last_group = payloads.into_iter().zip(signatures.iter().cloned()).collect();
        self.memory.remember(next)?;
        Ok(FromSigner::Signed { signatures })
    }
}

/// One message behind its length; none if the other end closed between two messages.
fn receive(socket: &mut UnixStream) -> Result<Option<Vec<u8>>, SignerError> {
    let failed = |source| SignerError::Socket { source };
    let mut length = [0_u8; 4];
    let first = loop {
        match socket.read(&mut length) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => break other.map_err(failed)?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    let rest = length.get_mut(first..).unwrap_or_default();
    socket.read_exact(rest).map_err(failed)?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > MESSAGE_MAX_BYTES {
        return Err(SignerError::Length { got: length, most: MESSAGE_MAX_BYTES });
    }
    let mut message = vec![0; length];
    socket.read_exact(&mut message).map_err(failed)?;
    Ok(Some(message))
}

fn send(socket: &mut UnixStream, answer: &FromSigner) -> Result<(), SignerError> {
    let body = postcard::to_stdvec(answer)
        .map_err(|source| SignerError::Encoding { what: "an answer to the daemon", source })?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|_| body.len() <= MESSAGE_MAX_BYTES)
        .ok_or(SignerError::Length { got: body.len(), most: MESSAGE_MAX_BYTES })?;
    let mut message = length.to_le_bytes().to_vec();
    message.extend_from_slice(&body);
    socket.write_all(&message).map_err(|source| SignerError::Socket { source })
}

#[cfg(test)]
mod tests;
