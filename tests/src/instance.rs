//! A private `toolcell serve`: its own state, socket, user ids and policy, watched from the outside.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use toolcell_types::{Answer, Health, ReceiptItem, ReceiptsPage};

use crate::command::toolcell;
use crate::http::{Connection, Response};
use crate::process::{Process, status_field, wait_gone};
use crate::wait::{eventually, within};
use crate::{Home, Request, Setup, cgroup_roots, groups_named};

/// A running instance.
#[derive(Debug)]
pub struct Instance {
    home: Option<Home>,
    child: Child,
    name: String,
    parts: Vec<Process>,
}

impl Instance {
    pub(crate) fn wait_until_up(home: Home, child: Child) -> Self {
        let mut instance = Self::wait_until_it_answers(home, child);
        instance.parts = eventually("serve to become the launcher", || instance.find_parts());
        instance
    }

    /// Without waiting for the launcher: good for nothing but ending it.
    pub(crate) fn wait_until_it_answers(home: Home, child: Child) -> Self {
        let mut instance = Self { home: Some(home), child, name: String::new(), parts: Vec::new() };
        let health: Health = eventually("serve to answer /healthz", || instance.health_or_death());
        instance.name = health.instance;
        instance
    }

    /// Starts one with the built-in policy.
    ///
    /// # Panics
    /// With its log, if it does not come up.
    #[must_use]
    pub fn start() -> Self {
        Setup::default().start()
    }

    /// Its place.
    ///
    /// # Panics
    /// Never while the instance is there.
    #[must_use]
    pub fn home(&self) -> &Home {
        self.home.as_ref().expect("an instance has a home")
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.home().socket()
    }

    /// Its name, as /healthz gives it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// First of its user ids.
    #[must_use]
    pub fn uid_base(&self) -> u32 {
        self.home().uid_base()
    }

    /// Everything that it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home().log()).unwrap_or_default()
    }

    /// The processes of its cells: those below the launcher in a pid namespace of their own.
    #[must_use]
    pub fn cell_processes(&self) -> Vec<Process> {
        let launcher = self.child.id();
        let all = Process::all();
        let parent = |pid: u32| all.iter().find(|process| process.pid == pid).map(|process| process.parent);
        let is_below = |process: &Process| {
            std::iter::successors(Some(process.pid), |pid| parent(*pid)).take(64).any(|pid| pid == launcher)
        };
        let nested = |process: &Process| {
            status_field(process.pid, "NSpid").is_some_and(|ids| ids.split_whitespace().count() == 2)
        };
        all.iter().filter(|process| process.state != 'Z' && is_below(process) && nested(process)).cloned().collect()
    }

    /// Its cgroup in the hierarchy of a controller.
    ///
    /// # Panics
    /// If it has none there.
    #[must_use]
    pub fn cgroup_dir(&self, controller: &str) -> PathBuf {
        self.find_cgroup_dir(controller).unwrap_or_else(|| panic!("no {controller} group of {}", self.name))
    }

    fn find_cgroup_dir(&self, controller: &str) -> Option<PathBuf> {
        let root = cgroup_roots().into_iter().find(|root| root.has(controller))?;
        groups_named(&self.name).into_iter().find(|dir| dir.starts_with(&root.path))
    }

    /// The groups of its cells, in every hierarchy.
    #[must_use]
    pub fn cell_groups(&self) -> Vec<PathBuf> {
        let dirs = groups_named(&self.name).into_iter();
        let entries = dirs.filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().filter_map(Result::ok);
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        found.sort();
        found
    }

    /// The process that `serve` became.
    #[must_use]
    pub fn launcher(&self) -> Process {
        self.part("launcher")
    }

    /// The process that speaks HTTP.
    #[must_use]
    pub fn daemon(&self) -> Process {
        self.part("daemon")
    }

    /// The process that holds the key.
    #[must_use]
    pub fn signer(&self) -> Process {
        self.part("signer")
    }

    /// A `toolcell` command line against this instance; `args` begin with the command's name.
    #[must_use]
    pub fn cli(&self, args: &[&str]) -> Command {
        let words = if args.first() == Some(&"keys") { 2 } else { 1 };
        let (name, rest) = args.split_at(words.min(args.len()));
        let mut command = toolcell(name);
        command.arg("--socket").arg(self.socket()).args(rest);
        command
    }

    /// `GET`.
    ///
    /// # Panics
    /// If nobody answers.
    #[must_use]
    pub fn get(&self, path: &str) -> Response {
        self.connect().ask("GET", path, &[], b"").expect("an answer comes")
    }

    /// `POST` with headers.
    ///
    /// # Panics
    /// If nobody answers.
    #[must_use]
    pub fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let json = [("Content-Type", "application/json")];
        let headers: Vec<(&str, &str)> = json.iter().chain(headers).copied().collect();
        self.connect().ask("POST", path, &headers, body).expect("an answer comes")
    }

    /// Submits a call and waits for the reply, whatever it is.
    ///
    /// # Panics
    /// If nobody answers.
    #[must_use]
    pub fn post(&self, request: &Request) -> Response {
        self.post_with("/v1/calls", &[], &request.bytes())
    }

    /// Submits a call and waits for its answer.
    ///
    /// # Panics
    /// If it is refused.
    #[must_use]
    pub fn call(&self, request: &Request) -> Answer {
        self.post(request).answer()
    }

    /// Opens a connection.
    ///
    /// # Panics
    /// If nobody listens.
    #[must_use]
    pub fn connect(&self) -> Connection {
        self.home().connect().expect("the daemon listens")
    }

    /// The state of the instance.
    #[must_use]
    pub fn health(&self) -> Health {
        self.get("/healthz").json()
    }

    /// Every entry of the log, in order.
    #[must_use]
    pub fn receipts(&self) -> Vec<ReceiptItem> {
        let mut all: Vec<ReceiptItem> = Vec::new();
        let mut path = "/v1/receipts".to_owned();
        loop {
            let page: ReceiptsPage = self.get(&path).json();
            match page.last {
                Some(last) if !page.receipts.is_empty() => path = format!("/v1/receipts?after={last}"),
                _ => return all,
            }
            all.extend(page.receipts);
        }
    }

    /// Kills one of its processes with SIGKILL and waits until all of them are gone.
    ///
    /// # Panics
    /// If one of them stays.
    #[must_use]
    pub fn crash(mut self, victim: &Process) -> Home {
        assert!(self.parts.iter().any(|part| part.pid == victim.pid), "only our own: {victim:?}");
        kill(pid_of(victim), Signal::SIGKILL).expect("our own process can be killed");
        let parts = std::mem::take(&mut self.parts);
        within(Duration::from_secs(10), "serve to end", || self.child.try_wait().ok().flatten());
        wait_gone(&parts);
        self.home.take().expect("an instance has a home")
    }

    /// Waits until it ends by itself, and until nothing is left of it.
    ///
    /// # Panics
    /// If it does not end, or not well, or leaves anything.
    pub fn wait_for_its_own_end(mut self) {
        let ended = within(Duration::from_secs(20), "serve to end by itself", || self.child.try_wait().ok().flatten());
        assert!(ended.success(), "serve ended with {ended}\n{}", self.log());
        self.home().remains(Some(&self.name)).vanish();
    }

    /// Ends it as an operator does, and keeps its place.
    ///
    /// # Panics
    /// If anything is left of it.
    #[must_use]
    pub fn stop(mut self) -> Home {
        self.end();
        self.home.take().expect("an instance has a home")
    }

    fn end(&mut self) {
        let ended = self.ask_to_end().unwrap_or_else(|| panic!("serve does not end on SIGTERM\n{}", self.log()));
        assert!(ended.success(), "serve ended with {ended}\n{}", self.log());
        self.home().remains(Some(&self.name)).vanish();
    }

    /// SIGTERM, as an operator does; none if it is still there 15 seconds later.
    fn ask_to_end(&mut self) -> Option<ExitStatus> {
        let launcher = Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are small"));
        kill(launcher, Signal::SIGTERM).expect("our own child can be signalled");
        let end = Instant::now() + Duration::from_secs(15);
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    fn part(&self, role: &str) -> Process {
        let found = self.parts.iter().find(|part| role_of(part) == role);
        found.unwrap_or_else(|| panic!("no {role} among {:?}", self.parts)).clone()
    }

    /// The parts, once the launcher has its groups in hand. An instance whose ledger is invalid has no signer.
    fn find_parts(&self) -> Option<Vec<Process>> {
        let launcher = self.child.id();
        let all = Process::all().into_iter();
        let mut parts: Vec<Process> = all.filter(|p| p.pid == launcher || p.parent == launcher).collect();
        // Before its opener of mounts, which is a copy of it.
        parts.sort_by_key(|part| part.pid != launcher);
        let there = |role: &&str| parts.iter().any(|part| role_of(part) == *role);
        let complete = ["launcher", "daemon"].iter().all(there);
        let complete = complete && (!self.home().has_groups() || self.find_cgroup_dir("memory").is_some());
        complete.then_some(parts)
    }

    fn health_or_death(&mut self) -> Option<Health> {
        if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
            panic!("serve ended with {status}\n{}", self.log());
        }
        let response = self.home().connect().ok()?.ask("GET", "/healthz", &[], b"").ok()?;
        serde_json::from_slice(&response.body).ok()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.home.is_none() || matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        if !std::thread::panicking() {
            return self.end();
        }
        // The test has failed already: end it in the way that leaves least behind, and show what it said.
        if self.ask_to_end().is_none() && self.child.kill().is_ok() {
            self.child.wait().expect("our own child can be waited for");
        }
        let log = self.log();
        let from = log.lines().count().saturating_sub(40);
        let tail: Vec<&str> = log.lines().skip(from).collect();
        std::io::Write::write_all(&mut std::io::stderr(), format!("serve's log:\n{}\n", tail.join("\n")).as_bytes())
            .expect("standard error is open");
    }
}

fn pid_of(process: &Process) -> Pid {
    Pid::from_raw(i32::try_from(process.pid).expect("process ids are small"))
}

fn role_of(process: &Process) -> &str {
    process.line.split(' ').nth(1).unwrap_or_default()
}
