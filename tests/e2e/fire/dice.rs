//! Chance that can be repeated.

use std::io::Read as _;

/// A stream of numbers from a seed (SplitMix64, Steele and others 2014).
#[derive(Debug)]
pub(super) struct Dice(u64);

/// A seed that nobody chose.
pub(super) fn any_seed() -> u64 {
    let mut bytes = [0_u8; 4];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    u64::from(u32::from_le_bytes(bytes))
}

impl Dice {
    /// The stream of that number, of those that a seed has.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Self(seed.wrapping_mul(0x0100_0000_01b3).wrapping_add(stream))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// One of these.
    pub(super) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let count = u64::try_from(all.len()).unwrap();
        &all[usize::try_from(self.below(count)).unwrap()]
    }
}
