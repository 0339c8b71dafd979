//! How and where an instance is started: its flags and policy files, its directory, its user ids.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use std::os::unix::process::CommandExt as _;

use crate::command::{Finished, command, run, toolcell_path};
use crate::http::Connection;
use crate::place::{UidRange, fresh_dir};
use crate::remains::Remains;
use crate::{Instance, OrdinaryUser};

/// How an instance is to be started.
#[derive(Debug, Default, Clone)]
pub struct Setup {
    flags: Vec<String>,
    policy: Vec<(String, String)>,
    env: Vec<(String, String)>,
    wrapper: Vec<String>,
    state: Option<String>,
    user: Option<OrdinaryUser>,
    lacks_groups: bool,
}

impl Setup {
    /// Adds arguments to `serve`.
    #[must_use]
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// Puts a file into the policy directory; the first one makes `--policy` be given.
    #[must_use]
    pub fn policy(mut self, name: &str, text: &str) -> Self {
        self.policy.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Sets a variable for `serve`.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts `serve` through another program, which gets the command line as its last arguments and becomes it.
    #[must_use]
    pub fn wrapped(mut self, words: &[&str]) -> Self {
        self.wrapper = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Starts it as an ordinary user.
    #[must_use]
    pub fn user(mut self, user: &OrdinaryUser) -> Self {
        self.user = Some(user.clone());
        self
    }

    /// It is expected to have no groups.
    #[must_use]
    pub fn without_groups(mut self) -> Self {
        self.lacks_groups = true;
        self
    }

    /// Puts the state elsewhere.
    #[must_use]
    pub fn state(mut self, path: &str) -> Self {
        self.state = Some(path.to_owned());
        self
    }

    /// Starts it in a fresh place.
    ///
    /// # Panics
    /// With its log, if it does not come up.
    #[must_use]
    pub fn start(self) -> Instance {
        Home::new(self).start()
    }

    /// Its place, before anything is started.
    #[must_use]
    pub fn home(self) -> Home {
        Home::new(self)
    }

    /// Starts it and waits for it to give up.
    ///
    /// # Panics
    /// If it does not end by itself.
    #[must_use]
    pub fn fails_to_start(self) -> Finished {
        Home::new(self).fails_to_start().1
    }
}

/// Where an instance lives; outlives its processes, so that it can be started again.
#[derive(Debug)]
pub struct Home {
    setup: Setup,
    dir: TempDir,
    uids: UidRange,
}

impl Home {
    fn new(setup: Setup) -> Self {
        let home = Self { setup, dir: fresh_dir(), uids: UidRange::take() };
        for (name, text) in &home.setup.policy {
            let dir = home.policy();
            std::fs::create_dir_all(&dir).expect("the policy directory can be made");
            std::fs::write(dir.join(name), text).expect("a policy file can be written");
        }
        if let Some(user) = home.user() {
            user.own(home.dir());
        }
        home
    }

    /// With these arguments to `serve` instead of those from before.
    #[must_use]
    pub fn with_flags(mut self, flags: &[&str]) -> Self {
        self.setup.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        self
    }

    /// The directory of everything.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The state directory.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.setup.state.as_ref().map_or_else(|| self.dir().join("state"), PathBuf::from)
    }

    /// The user that it is started as, if that is an ordinary one.
    #[must_use]
    pub fn user(&self) -> Option<&OrdinaryUser> {
        self.setup.user.as_ref()
    }

    /// Whether an instance here has groups for its cells.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.user().is_none() && !self.setup.lacks_groups
    }

    /// A connection to it, as its user.
    ///
    /// # Errors
    /// If nobody listens.
    pub fn connect(&self) -> std::io::Result<Connection> {
        match self.user() {
            Some(user) => Connection::open_as(&self.socket(), user.ids()),
            None => Connection::open(&self.socket()),
        }
    }

    /// The first of its user ids.
    #[must_use]
    pub fn uid_base(&self) -> u32 {
        self.uids.base()
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir().join("s")
    }

    fn policy(&self) -> PathBuf {
        self.dir().join("policy")
    }

    /// The file that `serve` writes to.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir().join("serve.log")
    }

    fn serve(&self) -> Command {
        self.command("serve", &["--log-format", "json"])
    }

    /// `toolcell doctor` with the options that `serve` is started with here.
    #[must_use]
    pub fn doctor(&self, words: &[&str]) -> Command {
        self.command("doctor", words)
    }

    /// Whether nothing was left in the directory by what was not started as an instance.
    ///
    /// # Panics
    /// If the directory cannot be listed.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        let entries = std::fs::read_dir(self.dir()).expect("the directory can be listed").filter_map(Result::ok);
        entries.filter(|entry| entry.file_name() != "policy").count() == 0
    }

    fn command(&self, name: &str, words: &[&str]) -> Command {
        let binary = self.user().map_or_else(toolcell_path, |user| PathBuf::from(user.binary()));
        let mut command = match self.setup.wrapper.split_first() {
            Some((program, words)) => {
                let mut command = command(program);
                command.args(words).arg(binary);
                command
            }
            None => command(binary),
        };
        command.arg(name).args(words);
        match self.user() {
            Some(user) => {
                if self.setup.wrapper.is_empty() {
                    command.uid(user.uid()).gid(user.gid());
                }
                user.environment(&mut command);
            }
            None => {
                command.args(["--uid-base", &self.uids.base().to_string()]);
            }
        }
        command.arg("--socket").arg(self.socket()).arg("--state").arg(self.state());
        if !self.setup.policy.is_empty() {
            command.arg("--policy").arg(self.policy());
        }
        command.args(&self.setup.flags).envs(self.setup.env.iter().cloned());
        command
    }

    /// Starts `serve` here.
    ///
    /// # Panics
    /// With its log, if it does not come up.
    #[must_use]
    pub fn start(self) -> Instance {
        let child = self.spawn();
        Instance::wait_until_up(self, child)
    }

    /// Starts `serve` here and asks it to end as soon as it answers.
    ///
    /// # Panics
    /// If it does not end well, or leaves anything.
    #[must_use]
    pub fn start_and_stop_at_once(self) -> Self {
        let child = self.spawn();
        Instance::wait_until_it_answers(self, child).stop()
    }

    /// Starts `serve` here and ends it with SIGKILL after that time, wherever in its start it is then. What it has started
    /// by then must end by itself.
    ///
    /// # Panics
    /// If it cannot be killed.
    pub fn start_and_kill(&self, after: std::time::Duration) {
        let mut child = self.spawn();
        std::thread::sleep(after);
        child.kill().expect("our own child can be killed");
        child.wait().expect("our own child can be waited for");
    }

    fn spawn(&self) -> Child {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log()).expect("the log opens");
        let errors = log.try_clone().expect("a descriptor can be doubled");
        self.serve().stdout(Stdio::from(log)).stderr(Stdio::from(errors)).spawn().expect("serve starts")
    }

    /// Starts `serve` here and waits for it to give up.
    ///
    /// # Panics
    /// If it does not end by itself, or leaves anything.
    #[must_use]
    pub fn fails_to_start(self) -> (Self, Finished) {
        let finished = run(&mut self.serve());
        self.remains(None).vanish();
        (self, finished)
    }

    /// What of it is left on the machine.
    #[must_use]
    pub fn remains(&self, instance: Option<&str>) -> Remains {
        Remains {
            uid_base: self.uids.base(),
            user: self.user().cloned(),
            instance: instance.map(str::to_owned),
            socket: self.socket(),
            dir: self.dir().to_path_buf(),
        }
    }
}
