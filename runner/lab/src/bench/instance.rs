//! An instance of its own: nothing of another one is measured, and nothing of this one stays.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use toolcell_client::Client;
use toolcell_types::ControlId;

use super::BenchError;
use crate::process;

/// How long a start and an end may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long an instance that closed its socket may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(5);
/// Most of its log that is shown when it did not start, in bytes.
const WORDS_MAX: usize = 2000;

/// A running `toolcell serve`.
#[derive(Debug)]
pub(super) struct Instance {
    serve: Child,
    socket: PathBuf,
    log: PathBuf,
    is_stopped: bool,
}

impl Instance {
    /// Starts it with everything in `folder`, and waits until it answers.
    pub(super) fn start(binary: &Path, folder: &Path, accept_unavailable: &[ControlId]) -> Result<Self, BenchError> {
        let (socket, log) = (folder.join("s"), folder.join("log"));
        let file = |source| BenchError::File { path: log.clone(), source };
        let words = File::create(&log).map_err(file)?;
        let mut command = process::command(binary);
        let _command = command.arg("serve").arg("--socket").arg(&socket).arg("--state").arg(folder.join("state"));
        if !accept_unavailable.is_empty() {
            let names: Vec<String> = accept_unavailable.iter().map(ToString::to_string).collect();
            let _command = command.arg("--accept-unavailable").arg(names.join(","));
        }
        // It ends by itself a while after nobody is there any more to end it, and has a group of its own, so that a
        // terminal's Ctrl-C is ours to pass on.
        let _command = command
            .args(["--idle-exit", "60"])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(words.try_clone().map_err(file)?)
            .stderr(words);
        let serve = command.spawn().map_err(|source| BenchError::System { doing: "start toolcell serve", source })?;
        let mut instance = Self { serve, socket, log, is_stopped: false };
        let began = Instant::now();
        while std::os::unix::net::UnixStream::connect(&instance.socket).is_err() {
            let ended = instance.serve.try_wait().map_err(wait_failed)?.is_some();
            if ended || began.elapsed() > PATIENCE {
                return Err(instance.start_error());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(instance)
    }

    /// What it said last.
    fn start_error(&self) -> BenchError {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let from = text.char_indices().map(|(at, _)| at).find(|at| text.len() - at <= WORDS_MAX);
        BenchError::Start { words: from.and_then(|at| text.get(at..)).unwrap_or_default().trim().to_owned() }
    }

    /// The true reason of an error, if it is that the instance ended before it ever answered.
    pub(super) fn reason(&mut self, error: BenchError) -> BenchError {
        let began = Instant::now();
        while began.elapsed() < LAST_WORDS {
            if matches!(self.serve.try_wait(), Ok(Some(_))) {
                return self.start_error();
            }
            std::thread::sleep(PAUSE);
        }
        error
    }

    pub(super) fn client(&self) -> Client {
        Client::new(&self.socket)
    }

    /// Number of the process that `serve` is.
    pub(super) fn pid(&self) -> u32 {
        self.serve.id()
    }

    /// Asks it to end, and waits.
    pub(super) fn stop(mut self) -> Result<(), BenchError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), BenchError> {
        if std::mem::replace(&mut self.is_stopped, true) {
            return Ok(());
        }
        let failed =
            |source: rustix::io::Errno| BenchError::System { doing: "end the instance", source: source.into() };
        if let Some(pid) = i32::try_from(self.serve.id()).ok().and_then(Pid::from_raw) {
            match kill_process(pid, Signal::TERM) {
                // Its number is its own until it has been waited for.
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        let began = Instant::now();
        while self.serve.try_wait().map_err(wait_failed)?.is_none() {
            if began.elapsed() > PATIENCE {
                self.serve.kill().map_err(wait_failed)?;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // After an error elsewhere, which is the one to tell; this one can only say that something stays.
        drop(self.end());
    }
}

fn wait_failed(source: std::io::Error) -> BenchError {
    BenchError::System { doing: "wait for the instance", source }
}
