//! Bytes that may not stay in memory: the next cell is a copy of it.

use std::ops::{Deref, DerefMut};

use zeroize::Zeroize as _;

/// What is in it is overwritten when it is dropped. Only that, unlike `Zeroizing`, and not all of its room, of which most
/// was never touched: to touch half a MiB for some KiB costs a page fault for each of its pages. So it is made with room
/// for all it will hold, because a vector that grows leaves copies behind, and it is never made shorter.
pub(crate) struct Wiped(Vec<u8>);

impl Wiped {
    /// Empty, with room for so many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Of what has been written in place already.
    pub(crate) const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for Wiped {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Wiped {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

/// Not the bytes.
impl std::fmt::Debug for Wiped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wiped({} bytes)", self.0.len())
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.as_mut_slice().zeroize();
    }
}
