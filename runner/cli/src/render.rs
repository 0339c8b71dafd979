//! Everything that is printed, and nothing else prints: data on standard output, talk on standard error.
//!
//! A closed standard output is a way to end ([`Exit::BrokenPipe`]), never a panic; a closed standard error is ignored,
//! as there is nobody left to tell. Text that came from elsewhere loses its control characters before it reaches a
//! terminal; a program's own output is passed on unchanged.

mod ablate;
mod bench;
mod doctor;
mod lines;
mod listing;
mod progress;
mod start;
mod summary;

use std::io::{self, IsTerminal as _, Write as _};

use tokio::io::AsyncWriteExt as _;
use toolcell_client::Stream;

pub(crate) use ablate::{ablate, page, probes};
pub(crate) use bench::bench;
pub(crate) use doctor::doctor;
pub(crate) use listing::{calls, receipts, running, tool, tools};
pub(crate) use progress::Progress;
pub(crate) use start::{NotStarted, Program};
pub(crate) use summary::{Place, summary};

use crate::args::{LogFormat, Talk, foreign_in};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::logs;

/// Writes data to standard output.
pub(crate) fn out(data: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(data).and_then(|()| stdout.flush()).map_err(broken)
}

/// Writes one JSON value to standard output, with a line feed behind it.
pub(crate) fn json(data: &[u8]) -> Result<(), Failure> {
    let mut line = data.to_vec();
    if line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    out(&line)
}

/// Writes a value as JSON to standard output.
pub(crate) fn value(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_vec(value).map_err(|source| Failure::plain(Exit::Failed, source))?;
    json(&text)
}

/// Says something on standard error: one line, or a few where the text has more.
pub(crate) fn say(text: &str) {
    err(format!("toolcell: {}\n", clean_lines(text)).as_bytes());
}

/// Says why a command did not do what it was asked, and what to do next.
pub(crate) fn failure(failure: &Failure, talk: Talk) {
    if failure.exit == Exit::BrokenPipe {
        return;
    }
    if let (Talk::Problem, Some(problem)) = (talk, &failure.problem)
        && json(problem).is_ok()
    {
        return;
    }
    let text = with_causes(&failure.error);
    if talk == Talk::Log {
        // A part that failed early has no log yet; one that has keeps it.
        let _has_log = logs::begin(LogFormat::Json).is_ok();
        tracing::error!(hint = failure.hint.as_deref(), "{text}");
        return;
    }
    say(&text);
    if let Some(text) = &failure.hint {
        hint(text);
    }
}

/// Says what to do next.
pub(crate) fn hint(text: &str) {
    err(format!("hint: {}\n", clean_lines(text)).as_bytes());
}

/// Prints what clap has to say: help and version on standard output, mistakes on standard error.
pub(crate) fn usage(error: &clap::Error, is_run: bool) {
    if let Some(docker) = foreign_in(error).filter(|_| is_run) {
        say(&format!("docker's {} is not taken here", docker.name));
        hint(docker.instead);
        return;
    }
    // Nobody is left to be told when this fails.
    drop(error.print());
}

/// Writes bytes to standard error; a failure there has no one to be reported to.
pub(crate) fn err(bytes: &[u8]) {
    let mut stderr = io::stderr().lock();
    drop(stderr.write_all(bytes).and_then(|()| stderr.flush()));
}

/// One of our own output streams as the end of a program's.
#[derive(Debug)]
pub(crate) struct Sink {
    to: Stream,
    last: Option<u8>,
}

impl Sink {
    /// Standard output or standard error.
    pub(crate) fn new(to: Stream) -> Self {
        Self { to, last: None }
    }

    /// Passes a piece on, unchanged and at once.
    pub(crate) async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.last = piece.last().copied().or(self.last);
        match self.to {
            Stream::Stdout => {
                let mut stdout = tokio::io::stdout();
                stdout.write_all(piece).await?;
                stdout.flush().await
            }
            Stream::Stderr => {
                let mut stderr = tokio::io::stderr();
                stderr.write_all(piece).await?;
                stderr.flush().await
            }
        }
    }

    /// Whether a line that we say now would be glued to what the program wrote last.
    pub(crate) fn is_mid_line(&self) -> bool {
        let is_seen_together = match self.to {
            Stream::Stdout => io::stdout().is_terminal() && io::stderr().is_terminal(),
            Stream::Stderr => true,
        };
        is_seen_together && self.last.is_some_and(|byte| byte != b'\n')
    }
}

/// What a failed write to standard output means.
pub(crate) fn broken(source: io::Error) -> Failure {
    let exit = if source.kind() == io::ErrorKind::BrokenPipe { Exit::BrokenPipe } else { Exit::Failed };
    Failure::plain(exit, anyhow::Error::new(source).context("cannot write to standard output"))
}

/// An error with its causes; one that is part of the text already is not repeated.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// The text with its control characters made visible, line by line.
fn clean_lines(text: &str) -> String {
    text.trim_end().lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// The text with its control characters made visible.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            cleaned.extend(letter.escape_default());
        } else {
            cleaned.push(letter);
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\nc\u{9b}d"), "a\\u{1b}[31mb\\nc\\u{9b}d");
        assert_eq!(clean("plain ä €"), "plain ä €");
    }

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("disk full").context("cannot write: disk full").context("no ledger");
        assert_eq!(with_causes(&error), "no ledger: cannot write: disk full");
    }

    #[test]
    fn several_lines_stay_several() {
        assert_eq!(clean_lines("a\n\tb\u{7}\n"), "a\n\\tb\\u{7}");
    }

    #[test]
    fn a_closed_pipe_is_an_exit_of_its_own() {
        assert_eq!(broken(io::ErrorKind::BrokenPipe.into()).exit, Exit::BrokenPipe);
        assert_eq!(broken(io::ErrorKind::StorageFull.into()).exit, Exit::Failed);
    }

    #[test]
    fn a_sink_remembers_whether_the_last_line_is_complete() {
        let mut sink = Sink::new(Stream::Stderr);
        assert!(!sink.is_mid_line());
        sink.last = Some(b'x');
        assert!(sink.is_mid_line());
        sink.last = Some(b'\n');
        assert!(!sink.is_mid_line());
    }
}
