//! A machine that has never seen toolcell, as far as its default paths go: a mount namespace of its own in which /run
//! and /var/lib are empty. Commands run in it as a newcomer types them, without `--socket`.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::command::{command, toolcell_path};
use crate::host::mount_lines;
use crate::http::Connection;
use crate::place::fresh_dir;
use crate::process::Process;
use crate::wait::within;

/// What the namespace's first process does: hide what is there, keep the locks of user ids shared with the host, wait.
const HIDE: &str = "set -e
mkdir -p \"$1/run/toolcell/uids\" \"$1/lib\" \"$1/etc\" /run/toolcell/uids
mount --bind /run/toolcell/uids \"$1/run/toolcell/uids\"
mount --rbind \"$1/run\" /run
mount --bind \"$1/lib\" /var/lib
if [ -d /etc/toolcell ]; then mount --bind \"$1/etc\" /etc/toolcell; fi
echo ready
exec sleep infinity";

/// The machine; whatever was started in it ends with it.
#[derive(Debug)]
pub struct FreshMachine {
    holder: Child,
    dir: TempDir,
}

impl FreshMachine {
    /// Makes one.
    ///
    /// # Panics
    /// If the namespace cannot be made.
    #[must_use]
    pub fn new() -> Self {
        let dir = fresh_dir();
        let mut unshare = command("unshare");
        unshare.args(["--mount", "--propagation", "private", "--", "/bin/sh", "-c", HIDE, "sh"]).arg(dir.path());
        let mut holder = unshare.stdout(Stdio::piped()).spawn().expect("unshare starts");
        let mut line = String::new();
        let out = holder.stdout.as_mut().expect("standard output is a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("it can be read");
        assert_eq!(line, "ready\n", "the namespace is made");
        Self { holder, dir }
    }

    /// A `toolcell` command line typed on this machine.
    #[must_use]
    pub fn toolcell(&self, args: &[&str]) -> Command {
        let mut command = self.command(&toolcell_path().to_string_lossy());
        command.args(args);
        command
    }

    /// Any command on this machine.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = command("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.holder.id())).args(["--", program]);
        command
    }

    /// The default socket, reached from outside.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.outside("/run/toolcell/toolcell.sock")
    }

    /// A path of this machine, reached from outside.
    #[must_use]
    pub fn outside(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.holder.id()))
    }

    /// A connection to its daemon, if one listens.
    #[must_use]
    pub fn connect(&self) -> Option<Connection> {
        Connection::open(&self.socket()).ok()
    }

    /// The process ids of the launchers that run on it: those whose mounts are this machine's, in its namespace or in a copy of it.
    #[must_use]
    pub fn launchers(&self) -> Vec<u32> {
        let run = self.dir.path().join("run").to_string_lossy().into_owned();
        let here = |process: &Process| mount_lines(&process.pid.to_string()).iter().any(|line| line.contains(&run));
        let roles = ["launcher", "serve"];
        let is_one = |process: &Process| {
            process.line.split(' ').nth(1).is_some_and(|word| roles.contains(&word)) && here(process)
        };
        let found: Vec<Process> = Process::all().into_iter().filter(is_one).collect();
        // Without their own children, which are copies of them.
        let pids: Vec<u32> = found.iter().map(|process| process.pid).collect();
        found.into_iter().filter(|process| !pids.contains(&process.parent)).map(|process| process.pid).collect()
    }

    /// Ends the daemon that was started on it, and waits for that.
    ///
    /// # Panics
    /// If there is none or it stays.
    pub fn stop_daemon(&self) {
        let stream = UnixStream::connect(self.socket()).expect("a daemon listens");
        let peer = getsockopt(&stream.as_fd(), sockopt::PeerCredentials).expect("the kernel says who listens");
        let launcher = Process::read(u32::try_from(peer.pid()).expect("process ids are positive")).expect("it lives");
        assert!(self.launchers().contains(&launcher.pid), "only what was started here is ended: {launcher:?}");
        kill(Pid::from_raw(peer.pid()), Signal::SIGTERM).expect("it can be signalled");
        within(Duration::from_secs(15), "the daemon's end", || (!launcher.is_alive()).then_some(()));
    }
}

impl Default for FreshMachine {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for FreshMachine {
    fn drop(&mut self) {
        for launcher in self.launchers().into_iter().filter_map(Process::read) {
            if let Ok(pid) = i32::try_from(launcher.pid)
                && kill(Pid::from_raw(pid), Signal::SIGTERM).is_ok()
            {
                within(Duration::from_secs(15), "the daemon's end", || (!launcher.is_alive()).then_some(()));
            }
        }
        if self.holder.kill().is_ok() {
            self.holder.wait().expect("our own child can be waited for");
        }
    }
}
