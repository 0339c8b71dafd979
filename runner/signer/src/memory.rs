//! What the signer remembers: the next index, the last leaf, the last group. Two slots take turns, so that a write that
//! is cut off leaves the one before it.
//!
//! A slot is a file: magic, version, sequence number, length, SHA-256 over all of these and the body, then the body. The
//! newer whole slot holds. A write is one overwrite in place and one fdatasync(2); the files are made large enough at
//! once, so that an ordinary group changes no metadata.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::signing::{GROUP_MAX, SignerStatus};
use toolcell_types::{LogPosition, PAYLOAD_MAX_BYTES, Sha256};

use crate::SignerError;
use crate::folder::{Folder, read_all};

/// The two files, and what they are called until they are whole.
const SLOTS: [(&str, &str); 2] = [("memory.0", "memory.0.new"), ("memory.1", "memory.1.new")];
const MAGIC: [u8; 8] = *b"tcsigner";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 60;
/// Room for about twenty ordinary entries before a file has to grow.
const INITIAL_BYTES: usize = 128 * 1024;
/// The largest group and what its encoding adds.
const SLOT_MAX_BYTES: usize = GROUP_MAX * (PAYLOAD_MAX_BYTES + 128) + 4096;

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    pub(crate) keyid: [u8; 32],
    pub(crate) next_index: u64,
    pub(crate) last_leaf: [u8; 32],
    pub(crate) genesis: Option<[u8; 32]>,
    pub(crate) last_group: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Remembered {
    /// Of a key that signed nothing.
    pub(crate) fn nothing(keyid: Sha256) -> Self {
        Self { keyid: keyid.0, next_index: 0, last_leaf: [0; 32], genesis: None, last_group: Vec::new() }
    }

    /// The place of the next entry.
    pub(crate) fn position(&self) -> LogPosition {
        LogPosition {
            origin: LogPosition::origin_of(&Sha256(self.keyid)),
            index: self.next_index,
            previous: Sha256(self.last_leaf),
            genesis: self.genesis.map(Sha256),
        }
    }

    /// As the daemon sees it.
    pub(crate) fn status(&self, public_pem: &str) -> SignerStatus {
        SignerStatus {
            keyid: Sha256(self.keyid).hex(),
            public_pem: public_pem.to_owned(),
            next_index: self.next_index,
            last_leaf: self.last_leaf,
            last_group: self.last_group.clone(),
        }
    }
}

/// The memory, durable.
#[derive(Debug)]
pub(crate) struct Memory {
    slots: [(File, &'static str); 2],
    sequence: u64,
    now: Remembered,
}

impl Memory {
    /// Makes the two files. `now` is durable when this returns.
    pub(crate) fn create(folder: &Folder, now: Remembered) -> Result<Self, SignerError> {
        let mut first = encode(1, &now)?;
        first.resize(first.len().max(INITIAL_BYTES), 0);
        for ((name, half), content) in SLOTS.into_iter().zip([first, vec![0; INITIAL_BYTES]]) {
            folder.remove(name)?;
            folder.create(name, half, &content)?;
        }
        Self::load(folder)?.ok_or(SignerError::Memory { what: "gone although it was just made" })
    }

    /// Reads the newer whole slot; none if there are no files at all.
    pub(crate) fn load(folder: &Folder) -> Result<Option<Self>, SignerError> {
        let [first, second] = SLOTS.map(|(name, _)| folder.open(name, OFlags::RDWR).map(|file| (file, name)));
        let (mut first, mut second) = match (first?, second?) {
            ((None, _), (None, _)) => return Ok(None),
            ((Some(first), a), (Some(second), b)) => ((first, a), (second, b)),
            _ => return Err(SignerError::Memory { what: "incomplete: one of its two files is gone" }),
        };
        let newest =
            [whole(&mut first)?, whole(&mut second)?].into_iter().flatten().max_by_key(|(sequence, _)| *sequence);
        let (sequence, now) = newest.ok_or(SignerError::Memory { what: "damaged in both of its files" })?;
        Ok(Some(Self { slots: [first, second], sequence, now }))
    }

    /// What is remembered now.
    pub(crate) fn now(&self) -> &Remembered {
        &self.now
    }

    /// Remembers, durably. After an error nothing may be signed any more: what the disk holds is unknown.
    pub(crate) fn remember(&mut self, next: Remembered) -> Result<(), SignerError> {
        let sequence = self.sequence.saturating_add(1);
        let content = encode(sequence, &next)?;
        // Slot 0 holds odd numbers, slot 1 even ones: the older slot is overwritten.
        let [odd, even] = &self.slots;
        let (file, name) = if sequence % 2 == 1 { odd } else { even };
        file.write_all_at(&content, 0).and_then(|()| file.sync_data()).map_err(|source| SignerError::File {
            name,
            doing: "written",
            source,
        })?;
        self.sequence = sequence;
        self.now = next;
        Ok(())
    }
}

fn encode(sequence: u64, remembered: &Remembered) -> Result<Vec<u8>, SignerError> {
    let body = postcard::to_stdvec(remembered)
        .map_err(|source| SignerError::Encoding { what: "the signer's memory", source })?;
    if body.len().saturating_add(HEADER_BYTES) > SLOT_MAX_BYTES {
        return Err(SignerError::Length { got: body.len(), most: SLOT_MAX_BYTES });
    }
    let mut content = head(sequence, &body);
    content.extend_from_slice(&digest(&content, &body));
    content.extend_from_slice(&body);
    Ok(content)
}

/// Magic, version, sequence, length.
fn head(sequence: u64, body: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEADER_BYTES.saturating_add(body.len()));
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&sequence.to_le_bytes());
    head.extend_from_slice(&u64::try_from(body.len()).unwrap_or(u64::MAX).to_le_bytes());
    head
}

fn digest(head: &[u8], body: &[u8]) -> [u8; 32] {
    let mut hasher = Hasher::new();
    hasher.update(head);
    hasher.update(body);
    hasher.finalize().into()
}

/// The content of a slot, none if it was never written or not to its end.
fn whole((file, name): &mut (File, &'static str)) -> Result<Option<(u64, Remembered)>, SignerError> {
    let content = read_all(file, name, SLOT_MAX_BYTES.max(INITIAL_BYTES))?;
    let Some((sequence, body)) = checked(&content) else {
        return Ok(None);
    };
    let (remembered, rest) = postcard::take_from_bytes(body)
        .map_err(|source| SignerError::Encoding { what: "the signer's memory", source })?;
    if !rest.is_empty() {
        return Err(SignerError::Memory { what: "of a form that this version does not know" });
    }
    Ok(Some((sequence, remembered)))
}

fn checked(content: &[u8]) -> Option<(u64, &[u8])> {
    let (magic, rest) = content.split_first_chunk::<8>()?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (stored, rest) = rest.split_first_chunk::<32>()?;
    let body = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let sequence = u64::from_le_bytes(*sequence);
    let known = *magic == MAGIC && u32::from_le_bytes(*version) == VERSION;
    (known && digest(&head(sequence, body), body) == *stored).then_some((sequence, body))
}

#[cfg(test)]
mod tests;
