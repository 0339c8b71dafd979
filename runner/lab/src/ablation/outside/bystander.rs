//! A child outside of the cells: one that is attacked, or one that holds what only a process can hold.
//!
//! It says what it has, one line `name value` each and `ready` at last, and ends when its standard input does.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{AblationError, BYSTANDER, Place, SECRET_VARIABLE, SIGNALS, Secret};
use crate::ablation::words::Instrument;
use crate::process;

/// How long it may take to answer.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// How long it may take to end.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// A running one. It ends, and what it holds goes, when this is dropped.
#[derive(Debug)]
pub(super) struct Bystander {
    child: Child,
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Bystander {
    /// One to attack, if that is needed.
    pub(super) async fn victim(
        needs: &[Instrument],
        place: &Place,
        secret: &Secret,
        arguments: &mut Vec<(&'static str, String)>,
    ) -> Result<Option<Self>, AblationError> {
        if !needs.contains(&Instrument::Victim) {
            return Ok(None);
        }
        let (victim, said) = Self::start(&[Instrument::Victim], place, secret).await?;
        let address = said.into_iter().find(|(name, _)| name == "address");
        let (_, address) = address.ok_or_else(|| broken("it has not said where its secret is"))?;
        arguments.push((Instrument::Victim.as_str(), victim.child.id().to_string()));
        arguments.push(("victim-address", address));
        Ok(Some(victim))
    }

    /// One that holds objects, if that is needed.
    pub(super) async fn objects(
        needs: &[Instrument],
        place: &Place,
        secret: &Secret,
        arguments: &mut Vec<(&'static str, String)>,
    ) -> Result<Option<Self>, AblationError> {
        let is_object = |need: &Instrument| {
            matches!(need, Instrument::Shm | Instrument::Msg | Instrument::Sem | Instrument::Mqueue)
        };
        let objects: Vec<Instrument> = needs.iter().copied().filter(is_object).collect();
        if objects.is_empty() {
            return Ok(None);
        }
        let (holder, said) = Self::start(&objects, place, secret).await?;
        for object in objects {
            let value = said.iter().find(|(name, _)| name == object.as_str());
            let (_, value) = value.ok_or_else(|| broken(format!("it has not said its {object}")))?;
            arguments.push((object.as_str(), value.clone()));
        }
        Ok(Some(holder))
    }

    /// Starts one and hears what it has. Not on the thread that everything else runs on: it takes a few milliseconds.
    async fn start(
        what: &[Instrument],
        place: &Place,
        secret: &Secret,
    ) -> Result<(Self, Vec<(String, String)>), AblationError> {
        let mut command = process::command(&place.binary);
        let _command = command.arg(BYSTANDER).args(what.iter().map(|one| one.as_str()));
        // A group of its own, so that a terminal's Ctrl-C is ours to pass on.
        let _command = command.env_clear().env(SECRET_VARIABLE, secret.text()).current_dir("/").process_group(0);
        let _command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let started = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn()?;
            let pipes = child.stdin.take().zip(child.stdout.take());
            let (ask, answers) = pipes.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
            let mut started = Self { child, ask: Some(ask), answers: BufReader::new(answers) };
            let mut said = Vec::new();
            loop {
                let line = started.line()?;
                match line.split_once(' ') {
                    Some((name, value)) => said.push((name.to_owned(), value.to_owned())),
                    None if line == "ready" => return Ok((started, said)),
                    None => return Err(io::Error::other(format!("it said {line:?}"))),
                }
            }
        });
        let started = started.await.map_err(|source| AblationError::Task { source })?;
        started.map_err(|source| AblationError::System { doing: "start a process outside of the cells", source })
    }

    /// How often SIGUSR1 has come.
    pub(super) fn signals(&mut self) -> Result<u64, AblationError> {
        let answer = self.ask(SIGNALS).map_err(|error| broken(format!("it does not tell its signals: {error}")))?;
        answer.parse().map_err(|error| broken(format!("it tells no number but {answer:?}: {error}")))
    }

    fn ask(&mut self, word: &str) -> io::Result<String> {
        let ask = self.ask.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        writeln!(ask, "{word}")?;
        self.line()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        // It writes whole lines, and nothing that was not asked for.
        if self.answers.buffer().is_empty() {
            let mut fds = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
            if poll(&mut fds, Some(&PATIENCE))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        drop(self.ask.take());
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < END_PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        // What does not end by itself, a stopped one for example, is ended; an error means that it is gone.
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn broken(detail: impl Into<String>) -> AblationError {
    AblationError::Bystander { detail: detail.into() }
}
