//! One line that tells how far a long work is, on standard error and only where that is a terminal.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use super::{clean, err};

/// No terminal is told more often.
const PAUSE: Duration = Duration::from_millis(100);
/// Most of a line, in characters; a narrow terminal would break it.
const WIDTH: usize = 78;

/// The line. It is gone once this is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    is_shown: bool,
    told: Option<Instant>,
}

impl Progress {
    /// Nothing is shown yet.
    pub(crate) fn new() -> Self {
        Self { is_shown: io::stderr().is_terminal(), told: None }
    }

    /// Shows the text in place of what was shown before, if that has been there for a moment.
    pub(crate) fn tell(&mut self, text: impl FnOnce() -> String) {
        if !self.is_shown || self.told.is_some_and(|told| told.elapsed() < PAUSE) {
            return;
        }
        self.told = Some(Instant::now());
        let line: String = clean(&text()).chars().take(WIDTH).collect();
        err(format!("\r\x1b[K{line}").as_bytes());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.told.is_some() {
            err(b"\r\x1b[K");
        }
    }
}
