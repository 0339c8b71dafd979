//! Starts a daemon on the default socket, detached, for as long as it is used.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{Errno, FdFlags};

use super::StartOptions;
use crate::build_digest::SELF_EXE;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paths::{Places, VARIABLES};
use crate::ready::{self, Patience, ReadyPipe, Word};
use crate::render;

/// How long a daemon that nobody asks lives, in seconds.
pub(crate) const IDLE_EXIT_S: u32 = 60;
/// Whoever holds the lock starts a daemon, which takes a moment.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);
/// A little more than `serve` gives its own parts.
const READY_PATIENCE: Duration = Duration::from_secs(45);
/// How long a `serve` that gives up may take to end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Lines from the end of the log that are shown when a start failed without a word.
const TAIL_LINES: usize = 6;
/// Most lines that are shown.
const LINES_MAX: usize = 40;

/// Held while a daemon is looked for and started, so that two starts at once share one daemon.
#[derive(Debug)]
pub(super) struct StartLock {
    _file: OwnedFd,
}

impl StartLock {
    /// Waits for it.
    pub(super) async fn take(places: &Places) -> Result<Self, Failure> {
        make_runtime(&places.runtime)?;
        let path = places.start_lock();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600)).map_err(|errno| cannot(&path, errno))?;
        let begin = Instant::now();
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(Errno::WOULDBLOCK) if begin.elapsed() < LOCK_PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(errno) => return Err(cannot(&path, errno)),
            }
        }
    }
}

fn cannot(path: &Path, errno: Errno) -> Failure {
    let error = anyhow::Error::new(io::Error::from(errno)).context(format!("cannot use {}", path.display()));
    Failure::plain(Exit::Failed, error)
}

/// The folder of socket and log must be ours alone: who can change it could put a socket of his own there.
fn make_runtime(path: &Path) -> Result<(), Failure> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(cannot(path, errno)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| cannot(path, errno))?;
    let stat = rustix::fs::fstat(&folder).map_err(|errno| cannot(path, errno))?;
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o022 != 0 {
        let error = anyhow!("{} can be changed by others", path.display());
        return Err(Failure::new(Exit::Failed, error, "chown it to root and chmod it go-w, or remove it"));
    }
    Ok(())
}

/// Starts the daemon and waits until it takes calls.
pub(super) fn start(places: &Places, options: StartOptions<'_>) -> Result<(), Failure> {
    let log = places.log();
    let started = launch(&log, &options).with_context(|| "cannot start a daemon");
    let (serve, ready) = started.map_err(|source| Failure::plain(Exit::Failed, source))?;
    if wait(ready).map_err(|source| Failure::plain(Exit::Failed, source))? {
        return Ok(());
    }
    wait_for_last_words(serve);
    let (said, hint) = last_words(&log);
    let error = anyhow!("the daemon did not start: {said}");
    Err(Failure::new(Exit::Failed, error, hint.unwrap_or_else(|| format!("its log is {}", log.display()))))
}

/// `serve` in a session of its own, with nothing of ours but the pipe that it tells us on.
fn launch(log: &Path, options: &StartOptions<'_>) -> io::Result<(Child, OwnedFd)> {
    let file = fresh_log(log)?;
    let (ready, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&tell, FdFlags::empty())?;
    #[expect(clippy::disallowed_methods, reason = "the command line starts our own parts; this is the one place")]
    let mut command = Command::new(SELF_EXE);
    command.arg0("toolcell").env_clear().current_dir("/");
    // What tells an ordinary user's daemon its places; root's are fixed.
    command.envs(VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.args(["serve", "--detach", "--log-format", "human", "--idle-exit", &IDLE_EXIT_S.to_string()]);
    command.args(["--ready-fd", &tell.as_raw_fd().to_string()]);
    if let Some(policy) = options.policy {
        command.arg("--policy").arg(policy);
    }
    if !options.accept.is_empty() {
        let names: Vec<&str> = options.accept.iter().map(|id| id.as_str()).collect();
        command.args(["--accept-unavailable", &names.join(",")]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::from(file.try_clone()?)).stderr(Stdio::from(file));
    // It outlives us; whether it serves is told by the pipe.
    Ok((command.spawn()?, ready))
}

/// `serve` lets go of the pipe a moment before it has said why it ends.
fn wait_for_last_words(mut serve: Child) {
    let begin = Instant::now();
    while matches!(serve.try_wait(), Ok(None)) && begin.elapsed() < LAST_WORDS {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The log of this start; that of the one before is kept beside it.
fn fresh_log(path: &Path) -> io::Result<File> {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    match std::fs::rename(path, PathBuf::from(old)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    File::options().append(true).create_new(true).mode(0o600).open(path)
}

/// Whether the word came. The end of the pipe without it means that `serve` ended.
pub(crate) fn wait(ready: OwnedFd) -> anyhow::Result<bool> {
    let (mut ready, mut patience) = (ReadyPipe::new(ready), Patience::new(READY_PATIENCE));
    loop {
        let timeout = rustix::event::Timespec::try_from(patience.left()).context("cannot wait for the daemon")?;
        match poll(&mut [PollFd::new(&ready, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(anyhow::Error::new(errno).context("cannot wait for the daemon")),
        }
        for word in ready.words().context("cannot hear from the daemon")? {
            match word {
                Word::Ready => return Ok(true),
                Word::End => return Ok(false),
                Word::Checking { checked, of } if patience.hear(checked) => {
                    render::say(&ready::words_of(checked, of));
                }
                Word::Checking { .. } => {}
            }
        }
    }
}

/// What the log ends with, and the hint in it, if `serve` gave one.
fn last_words(log: &Path) -> (String, Option<String>) {
    let text = match std::fs::read(log) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return (format!("and its log cannot be read ({error})"), None),
    };
    words_of(&text)
}

/// What the parts said themselves comes first; where they said nothing, their last log lines do.
fn words_of(log: &str) -> (String, Option<String>) {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let hint = lines.iter().rev().find_map(|line| line.strip_prefix("hint: ")).map(str::to_owned);
    let is_said = |line: &&str| line.starts_with("toolcell: ");
    let has_said = lines.iter().any(is_said);
    let from = lines.iter().position(is_said).unwrap_or(lines.len().saturating_sub(TAIL_LINES));
    // Behind what was said, the other parts' log lines are of no use to anybody who only typed a command.
    let is_noise = |line: &str| line.starts_with("hint: ") || (has_said && is_log_line(line));
    let said = lines.iter().skip(from).filter(|line| !is_noise(line)).take(LINES_MAX);
    let text: Vec<&str> = said.map(|line| line.strip_prefix("toolcell: ").unwrap_or(line)).collect();
    (if text.is_empty() { "it said nothing".to_owned() } else { text.join("\n") }, hint)
}

/// A line of the log has a time and a level in front.
fn is_log_line(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let has_time = words.next().is_some_and(|word| {
        word.ends_with('Z') && word.get(4..5) == Some("-") && word.bytes().take(4).all(|byte| byte.is_ascii_digit())
    });
    has_time && words.next().is_some_and(|word| matches!(word, "TRACE" | "DEBUG" | "INFO" | "WARN" | "ERROR"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_log_s_last_lines_and_its_hint_are_what_the_user_sees() {
        let log = "INFO signer ready\ntoolcell: no policy:\n  line 3\nhint: remove it\ntoolcell: the daemon ended\n";
        let words = "no policy:\n  line 3\nthe daemon ended".to_owned();
        assert_eq!(words_of(log), (words, Some("remove it".to_owned())));
        let log = "toolcell: no policy:\n  line 3\n2026-11-30T16:00:00.1Z  INFO toolcell_signer: ready\n\
                   hint: remove it\ntoolcell: the daemon ended\n";
        assert_eq!(words_of(log).0, "no policy:\n  line 3\nthe daemon ended", "no lines of other parts");
        assert_eq!(words_of(""), ("it said nothing".to_owned(), None));
        let long: String = (0..20).map(|n| format!("{n}\n")).collect();
        assert_eq!(words_of(&long).0, "14\n15\n16\n17\n18\n19");
    }

    #[test]
    fn each_start_has_a_log_of_its_own_and_keeps_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.log");
        drop(fresh_log(&path).unwrap());
        std::fs::write(&path, "first").unwrap();
        drop(fresh_log(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        assert_eq!(std::fs::read(folder.path().join("serve.log.old")).unwrap(), b"first");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_runtime_folder_that_others_can_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        make_runtime(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(make_runtime(&path).is_err());
    }

    #[test]
    fn a_pipe_that_ends_without_the_word_means_no_daemon() {
        let (ready, tell) = rustix::pipe::pipe().unwrap();
        drop(tell);
        assert!(!wait(ready).unwrap());
        let (ready, tell) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&tell, b"checking 1 of 2\nready\n").unwrap();
        assert!(wait(ready).unwrap());
    }
}
