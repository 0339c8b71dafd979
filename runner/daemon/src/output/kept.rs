//! What is remembered of one output stream: a digest and a count of everything, a head, and a window onto the end.
//!
//! Guarantees: memory is bounded by what is to be kept plus [`WINDOW_BYTES`], however long the stream is and whether
//! or not it has lines; a reader that was let in gets every byte once and in order, because nothing is dropped from
//! the window before it was read. Does not: read pipes or wait; see the parent module.

use std::collections::{BTreeMap, VecDeque};

use sha2::Digest as _;
use toolcell_types::Sha256;

/// The window is at least this large, so that readers can follow a stream of which hardly anything is kept. Also the
/// largest chunk that is appended at once.
pub(super) const WINDOW_BYTES: usize = 64 * 1024;

/// One stream, from its first byte to its end.
pub(super) struct Kept {
    head_max: usize,
    tail_max: usize,
    head: Vec<u8>,
    /// The last bytes of the stream that are not in the head.
    window: VecDeque<u8>,
    total: u64,
    hasher: sha2::Sha256,
    readers: BTreeMap<u64, u64>,
    next_reader: u64,
    is_closed: bool,
}

/// A stream that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Captured {
    /// Digest of every byte that was read.
    pub(crate) digest: Sha256,
    /// Number of bytes that were read.
    pub(crate) total_bytes: u64,
    /// Head and tail, or everything.
    pub(crate) kept: Vec<u8>,
    /// How many of the kept bytes stand before the gap; all of them if there is none.
    pub(crate) head_bytes: u64,
    /// `total_bytes` without the kept ones.
    pub(crate) dropped_bytes: u64,
}

/// What a reader gets next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    End,
}

impl Kept {
    /// Keeps at most `keep_bytes`: the first half as head, the rest as tail.
    pub(super) fn new(keep_bytes: u64) -> Self {
        let keep = usize::try_from(keep_bytes).unwrap_or(usize::MAX);
        Self {
            head_max: keep - keep / 2,
            tail_max: keep / 2,
            head: Vec::new(),
            window: VecDeque::new(),
            total: 0,
            hasher: sha2::Sha256::new(),
            readers: BTreeMap::new(),
            next_reader: 0,
            is_closed: false,
        }
    }

    /// Takes the chunk, unless bytes that a reader still needs would be lost; then nothing has happened. With
    /// `force` those bytes are held beyond the window instead: for what is left in a pipe whose writers are gone.
    pub(super) fn append(&mut self, chunk: &[u8], force: bool) -> bool {
        let for_head = chunk.len().min(self.head_max - self.head.len());
        let (to_head, to_window) = chunk.split_at_checked(for_head).unwrap_or((chunk, &[]));
        let window_max = self.tail_max.max(WINDOW_BYTES);
        let excess = (self.window.len() + to_window.len()).saturating_sub(window_max);
        let droppable = self.droppable_bytes();
        if excess > droppable && !force {
            return false;
        }
        self.hasher.update(chunk);
        self.total = self.total.saturating_add(bytes(chunk.len()));
        self.head.extend_from_slice(to_head);
        self.window.extend(to_window);
        self.window.drain(..excess.min(droppable));
        true
    }

    /// How much of the window's beginning every reader has read. A reader inside the head needs all of the window.
    fn droppable_bytes(&self) -> usize {
        let behind = self.readers.values().min().map(|offset| offset.saturating_sub(self.window_start()));
        behind.map_or(usize::MAX, |read| usize::try_from(read).unwrap_or(usize::MAX))
    }

    fn window_start(&self) -> u64 {
        self.total - bytes(self.window.len())
    }

    /// No byte comes any more.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// A new reader at the first byte, or none when bytes after the head are gone already.
    pub(super) fn admit_reader(&mut self) -> Option<u64> {
        if self.window_start() > bytes(self.head.len()) {
            return None;
        }
        let reader = self.next_reader;
        self.next_reader += 1;
        self.readers.insert(reader, 0);
        Some(reader)
    }

    /// The reader wants nothing more; true if there was one.
    pub(super) fn dismiss_reader(&mut self, reader: u64) -> bool {
        self.readers.remove(&reader).is_some()
    }

    /// The reader's next bytes, at most `most`.
    pub(super) fn read(&mut self, reader: u64, most: usize) -> Piece {
        let Some(offset) = self.readers.get(&reader).copied() else { return Piece::End };
        if offset >= self.total {
            return if self.is_closed { Piece::End } else { Piece::Nothing };
        }
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let piece: Vec<u8> = match self.head.get(at..) {
            Some(rest) if !rest.is_empty() => rest.iter().take(most).copied().collect(),
            _past_the_head => {
                let skip = usize::try_from(offset - self.window_start()).unwrap_or(usize::MAX);
                self.window.iter().skip(skip).take(most).copied().collect()
            }
        };
        self.readers.insert(reader, offset + bytes(piece.len()));
        Piece::Bytes(piece)
    }

    /// What is kept as of now, and what became of the rest. Head and tail end and begin at UTF-8 borders if that
    /// makes them text.
    pub(super) fn capture(&self) -> Captured {
        let tail_start = self.window.len().saturating_sub(self.tail_max);
        let tail: Vec<u8> = self.window.iter().skip(tail_start).copied().collect();
        let is_whole = bytes(self.head.len()) + bytes(tail.len()) == self.total;
        let (head, tail) =
            if is_whole { (self.head.as_slice(), tail.as_slice()) } else { super::utf8::at_borders(&self.head, &tail) };
        let kept = [head, tail].concat();
        Captured {
            digest: Sha256(self.hasher.clone().finalize().into()),
            total_bytes: self.total,
            dropped_bytes: self.total - bytes(kept.len()),
            head_bytes: bytes(if is_whole { kept.len() } else { head.len() }),
            kept,
        }
    }
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(kept: &mut Kept, reader: u64) -> Vec<u8> {
        let mut all = Vec::new();
        while let Piece::Bytes(piece) = kept.read(reader, 1000) {
            assert!(!piece.is_empty());
            all.extend(piece);
        }
        all
    }

    #[test]
    fn keeps_everything_that_fits_and_says_that_nothing_was_dropped() {
        let mut kept = Kept::new(6);
        assert!(kept.append(b"abc", false) && kept.append(b"def", false));
        let captured = kept.capture();
        assert_eq!((captured.kept.as_slice(), captured.dropped_bytes), (b"abcdef".as_slice(), 0));
        assert_eq!(captured.digest.hex(), "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721");
    }

    #[test]
    fn keeps_head_and_tail_and_digests_what_it_drops() {
        let mut kept = Kept::new(5);
        for byte in b'a'..=b'z' {
            assert!(kept.append(&[byte], false));
        }
        let captured = kept.capture();
        assert_eq!(captured.kept, b"abcyz");
        assert_eq!((captured.total_bytes, captured.dropped_bytes, captured.head_bytes), (26, 21, 3));
        assert_eq!(captured.digest.hex(), "71c480df93d6ae2f1efad1447c66c9525e316218cf51fc8d9ed832f2daf18b73");
    }

    #[test]
    fn a_hundred_megabytes_leave_no_more_than_the_window_in_memory() {
        let mut kept = Kept::new(1000);
        let chunk = vec![b'x'; WINDOW_BYTES];
        for _ in 0..1600 {
            assert!(kept.append(&chunk, false));
        }
        assert!(kept.window.capacity() <= 4 * WINDOW_BYTES, "{}", kept.window.capacity());
        assert_eq!(kept.capture().kept.len(), 1000);
        assert_eq!(kept.capture().total_bytes, 1600 * 65_536);
    }

    #[test]
    fn a_reader_gets_every_byte_in_order_and_holds_the_stream_back_until_it_did() {
        let mut kept = Kept::new(10);
        let reader = kept.admit_reader().unwrap();
        let chunk: Vec<u8> = (0..=255_u8).cycle().take(WINDOW_BYTES).collect();
        assert!(kept.append(&chunk, false));
        assert!(!kept.append(&chunk, false), "the reader has read nothing yet");
        let mut seen = read_all(&mut kept, reader);
        assert!(kept.append(&chunk, false));
        seen.extend(read_all(&mut kept, reader));
        assert_eq!(seen, [chunk.as_slice(), &chunk].concat());
        assert_eq!(kept.read(reader, 1), Piece::Nothing);
        kept.close();
        assert_eq!(kept.read(reader, 1), Piece::End);
    }

    #[test]
    fn a_reader_that_left_holds_nothing_back() {
        let mut kept = Kept::new(10);
        let reader = kept.admit_reader().unwrap();
        let chunk = vec![0; WINDOW_BYTES];
        assert!(kept.append(&chunk, false) && !kept.append(&chunk, false));
        assert!(kept.dismiss_reader(reader));
        assert!(kept.append(&chunk, false));
        assert!(!kept.dismiss_reader(reader));
    }

    #[test]
    fn the_last_bytes_of_a_pipe_are_held_for_a_slow_reader() {
        let mut kept = Kept::new(10);
        let reader = kept.admit_reader().unwrap();
        let chunk = vec![7; WINDOW_BYTES];
        assert!(kept.append(&chunk, false) && kept.append(&chunk, true));
        assert_eq!(kept.capture().kept.len(), 10, "what is kept does not grow by it");
        assert_eq!(read_all(&mut kept, reader).len(), 2 * WINDOW_BYTES);
    }

    #[test]
    fn a_late_reader_is_let_in_only_while_the_beginning_is_there() {
        let mut kept = Kept::new(10);
        assert!(kept.append(&vec![1; WINDOW_BYTES], false));
        assert!(kept.admit_reader().is_some_and(|reader| kept.dismiss_reader(reader)));
        assert!(kept.append(&vec![2; WINDOW_BYTES], false));
        assert_eq!(kept.admit_reader(), None);
    }

    #[test]
    fn a_stream_of_one_kept_byte_has_no_tail() {
        let mut kept = Kept::new(1);
        assert!(kept.append(b"xyz", false));
        assert_eq!((kept.capture().kept.as_slice(), kept.capture().dropped_bytes), (b"x".as_slice(), 2));
    }
}
