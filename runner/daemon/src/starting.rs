//! What is told to whoever started the daemon, and waits for it: how far the start is, then that it is done.
//!
//! Guarantees: a line a second at most, so that the reader never falls behind far enough to stop us; one that is gone
//! does not matter until the last word. Does not: know what takes time.

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// How often.
const PAUSE: Duration = Duration::from_secs(1);

/// The pipe to whoever waits.
#[derive(Debug)]
pub(crate) struct Starting {
    pipe: File,
    told: Instant,
}

impl Starting {
    /// Tells on this pipe; a start that takes no time says nothing but the last word.
    pub(crate) fn new(pipe: File) -> Self {
        Self { pipe, told: Instant::now() }
    }

    /// Says how many entries of the ledger were checked.
    pub(crate) fn checking(&mut self, checked: u64, of: u64) {
        if self.told.elapsed() < PAUSE {
            return;
        }
        self.told = Instant::now();
        if let Err(error) = writeln!(self.pipe, "checking {checked} of {of}") {
            tracing::debug!(%error, "nobody hears how far the start is");
        }
    }

    /// Says that requests are answered.
    ///
    /// # Errors
    /// Nobody is there to hear it.
    pub(crate) fn ready(mut self) -> std::io::Result<()> {
        self.pipe.write_all(b"ready\n")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::OwnedFd;

    use super::*;

    fn long_ago() -> Instant {
        Instant::now().checked_sub(PAUSE).unwrap()
    }

    #[test]
    fn progress_is_told_now_and_then_and_the_end_always() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut starting = Starting::new(File::from(OwnedFd::from(writer)));
        starting.checking(128, 100_000);
        starting.told = long_ago();
        starting.checking(256, 100_000);
        starting.checking(384, 100_000);
        starting.ready().unwrap();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "checking 256 of 100000\nready\n");
    }

    #[test]
    fn a_listener_that_is_gone_is_missed_only_at_the_end() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut starting = Starting::new(File::from(OwnedFd::from(writer)));
        starting.told = long_ago();
        starting.checking(1, 2);
        assert!(starting.ready().is_err());
    }
}
