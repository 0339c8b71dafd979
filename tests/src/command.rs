//! Running programs with a deadline: `toolcell` as a user does, and the host's own tools.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::place::target_dir;
use crate::wait::within;

/// The most that one command line may take. A report of `doctor` is a start and four cells, ten times as slow in the virtual
/// machine, beside whatever else runs there.
const LIMIT: Duration = Duration::from_secs(1_200);

/// What a program left behind.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its exit code; 128 + n if signal n killed it.
    pub code: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
    /// From start to end.
    pub took: Duration,
}

impl Finished {
    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Itself, if the exit code is the expected one.
    ///
    /// # Panics
    /// With everything that was printed, if it is another.
    #[must_use]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.text(), self.stderr);
        self
    }

    /// Standard output as one JSON value.
    ///
    /// # Panics
    /// If it is not exactly one.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("no single JSON value ({error}): {}\n{}", self.text(), self.stderr))
    }
}

/// A program to run, with nothing on standard input and without our own variables.
#[must_use]
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the one place of the suite that makes commands")]
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env_remove("TOOLCELL_SOCKET").env_remove("RUST_LOG");
    command
}

/// The root of the workspace.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

/// The binary under test: `TOOLCELL_BIN`, else the one beside the test binary's `deps` directory.
#[must_use]
pub fn toolcell_path() -> PathBuf {
    std::env::var_os("TOOLCELL_BIN").map_or_else(|| target_dir().join("debug/toolcell"), PathBuf::from)
}

/// A `toolcell` command line.
#[must_use]
pub fn toolcell(args: &[&str]) -> Command {
    let mut command = command(toolcell_path());
    command.args(args);
    command
}

/// Runs a command to its end.
///
/// # Panics
/// If it cannot be started or takes longer than three minutes; then it is killed.
#[must_use]
pub fn run(command: &mut Command) -> Finished {
    Live::start(command).finish()
}

/// Runs a command to its end with these bytes on standard input.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn run_with_input(command: &mut Command, input: &[u8]) -> Finished {
    let mut live = Live::start(command.stdin(Stdio::piped()));
    let mut stdin = live.child.stdin.take().expect("standard input is a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let finished = live.finish();
    match writer.join().expect("the writer ends") {
        // A program that ends without reading breaks the pipe, which is its right.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => panic!("writing to standard input: {error}"),
        _ => finished,
    }
}

/// A running command.
#[derive(Debug)]
pub struct Live {
    child: Child,
    started: Instant,
    stdout: Option<ChildStdout>,
    seen: Vec<u8>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Live {
    /// Starts a command with both outputs caught.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let started = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let stdout = child.stdout.take();
        let mut err = child.stderr.take().expect("standard error is a pipe");
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            err.read_to_end(&mut bytes).expect("standard error can be read");
            bytes
        });
        Self { child, started, stdout, seen: Vec::new(), stderr: Some(stderr) }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads standard output until it holds `text`.
    ///
    /// # Panics
    /// If it ends without.
    pub fn read_until(&mut self, text: &str) {
        let out = self.stdout.as_mut().expect("standard output is open");
        let mut chunk = [0_u8; 4096];
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            let n = out.read(&mut chunk).expect("standard output can be read");
            assert!(n > 0, "ended without {text:?}, with {:?}", String::from_utf8_lossy(&self.seen));
            self.seen.extend_from_slice(&chunk[..n]);
        }
    }

    /// Sends a signal to it.
    ///
    /// # Panics
    /// If there is no such process.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = i32::try_from(self.child.id()).expect("process ids are small");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).expect("our own child can be signalled");
    }

    /// Whether it has ended.
    ///
    /// # Panics
    /// If the kernel does not say.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("our own child can be waited for").is_some()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it takes longer than three minutes; then it is killed.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        let mut out = self.stdout.take().expect("standard output is open");
        let mut seen = std::mem::take(&mut self.seen);
        let stdout = std::thread::spawn(move || {
            out.read_to_end(&mut seen).expect("standard output can be read");
            seen
        });
        let status = self.wait_or_kill();
        let stdout = stdout.join().expect("the reader ends");
        let stderr = self.stderr.take().expect("taken once").join().expect("the reader ends");
        let took = self.started.elapsed();
        Finished { code: code_of(status), stdout, stderr: String::from_utf8_lossy(&stderr).into_owned(), took }
    }

    fn wait_or_kill(&mut self) -> ExitStatus {
        let end = self.started + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
                return status;
            }
            if Instant::now() > end {
                self.child.kill().expect("our own child can be killed");
                panic!("a command took longer than {LIMIT:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) && self.child.kill().is_ok() {
            within(LIMIT, "a killed child's end", || self.child.try_wait().ok().flatten());
        }
    }
}

fn code_of(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or_else(|| status.signal().map(|n| 128 + n)).expect("an ended process has a code or a signal")
}
