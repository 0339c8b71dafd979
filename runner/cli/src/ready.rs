//! The pipe on which a part that starts says how far it is ("checking N of M\n"), and at last "ready\n".
//!
//! Guarantees: patience is extended only by progress, so that a part that hangs does not hang who waits for it; whoever
//! waits hears what for. Does not: wait.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Longest line that is understood.
const LINE_MAX_BYTES: usize = 64;
/// How often is said what is waited for.
const PAUSE: Duration = Duration::from_secs(5);

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// So many entries of the ledger are checked, of so many.
    Checking { checked: u64, of: u64 },
    /// Calls are taken.
    Ready,
    /// The end of the pipe, or something that no part of ours says.
    End,
}

/// The reading end.
#[derive(Debug)]
pub(crate) struct ReadyPipe {
    pipe: File,
    held: Vec<u8>,
}

impl ReadyPipe {
    /// Reads from this pipe.
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self { pipe: File::from(pipe), held: Vec::new() }
    }

    /// Whole lines that came; waits if there is nothing at all.
    pub(crate) fn words(&mut self) -> io::Result<Vec<Word>> {
        let mut bytes = [0_u8; 1024];
        let length = self.pipe.read(&mut bytes)?;
        self.held.extend_from_slice(bytes.get(..length).unwrap_or_default());
        let mut words = Vec::new();
        while let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.held.drain(..=end).collect();
            words.push(word(line.trim_ascii_end()));
        }
        if length == 0 || self.held.len() > LINE_MAX_BYTES {
            words.push(Word::End);
        }
        Ok(words)
    }
}

impl AsFd for ReadyPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

fn word(line: &[u8]) -> Word {
    let line = std::str::from_utf8(line).unwrap_or_default();
    if line == "ready" {
        return Word::Ready;
    }
    let numbers = line.strip_prefix("checking ").and_then(|rest| rest.split_once(" of "));
    match numbers.map(|(checked, of)| (checked.parse(), of.parse())) {
        Some((Ok(checked), Ok(of))) => Word::Checking { checked, of },
        Some(_) | None => Word::End,
    }
}

/// How long to go on waiting, and who hears of it.
#[derive(Debug)]
pub(crate) struct Patience {
    most: Duration,
    since: Instant,
    farthest: u64,
    said: Option<Instant>,
}

impl Patience {
    /// Waits that long for a start that makes no progress.
    pub(crate) fn new(most: Duration) -> Self {
        Self { most, since: Instant::now(), farthest: 0, said: None }
    }

    /// What is left.
    pub(crate) fn left(&self) -> Duration {
        self.most.saturating_sub(self.since.elapsed())
    }

    /// Begins anew if this is progress. True if it is time to say so.
    pub(crate) fn hear(&mut self, checked: u64) -> bool {
        if checked > self.farthest {
            self.farthest = checked;
            self.since = Instant::now();
        }
        let is_time = self.said.is_none_or(|at| at.elapsed() >= PAUSE);
        if is_time {
            self.said = Some(Instant::now());
        }
        is_time
    }
}

/// What is waited for, in words.
pub(crate) fn words_of(checked: u64, of: u64) -> String {
    format!("waiting for the ledger to be checked: {checked} of {of} entries")
}

/// Passes progress on. Who waits there may be gone, which does not matter.
pub(crate) fn pass_on(to: Option<&OwnedFd>, checked: u64, of: u64) {
    let copy = to.map(OwnedFd::try_clone);
    if let Some(Ok(copy)) = copy
        && let Err(error) = writeln!(File::from(copy), "checking {checked} of {of}")
    {
        tracing::debug!(%error, "nobody hears how far the start is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> (ReadyPipe, File) {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        (ReadyPipe::new(reader), File::from(writer))
    }

    #[test]
    fn lines_are_words_however_they_are_cut() {
        let (mut ready, mut writer) = pipe();
        writer.write_all(b"checking 1 of 20\nchecking 12 o").unwrap();
        assert_eq!(ready.words().unwrap(), [Word::Checking { checked: 1, of: 20 }]);
        writer.write_all(b"f 20\nready\n").unwrap();
        assert_eq!(ready.words().unwrap(), [Word::Checking { checked: 12, of: 20 }, Word::Ready]);
        drop(writer);
        assert_eq!(ready.words().unwrap(), [Word::End]);
    }

    #[test]
    fn what_no_part_says_is_the_end() {
        for odd in ["\n", "checking\n", "checking x of 2\n", "checking -1 of 2\n", &"x".repeat(LINE_MAX_BYTES + 1)] {
            let (mut ready, mut writer) = pipe();
            writer.write_all(odd.as_bytes()).unwrap();
            assert_eq!(ready.words().unwrap(), [Word::End], "{odd:?}");
        }
    }

    #[test]
    fn only_progress_extends_patience_and_it_is_told_now_and_then() {
        let mut patience = Patience::new(Duration::from_secs(3600));
        let before = patience.since;
        assert!(patience.hear(0), "the first word is passed on");
        assert_eq!(patience.since, before, "nothing was checked yet");
        assert!(!patience.hear(128));
        let since = patience.since;
        assert!(since > before);
        assert!(!patience.hear(128));
        assert_eq!(patience.since, since, "a start that hangs may say so for ever");
        assert_eq!(Patience::new(Duration::ZERO).left(), Duration::ZERO);
    }
}
