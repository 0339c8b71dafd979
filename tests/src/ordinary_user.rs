//! An ordinary user of this machine, made for one test and removed after it, with or without subordinate ids. Where the
//! suite itself runs as an ordinary user, as in a container, it is that one, who has none.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{Gid, Uid, User};
use tempfile::TempDir;

use crate::command::{command, run, toolcell_path};
use crate::place;
use crate::process::{OPENER, Process};
use crate::wait::eventually;

static NEXT: AtomicU32 = AtomicU32::new(1);

/// The user; shared by what runs as it, and removed with the last of them.
#[derive(Debug, Clone)]
pub struct OrdinaryUser(Arc<Account>);

#[derive(Debug)]
struct Account {
    name: String,
    uid: u32,
    gid: u32,
    range: Option<(u32, u32)>,
    home: TempDir,
    binary: PathBuf,
    /// Whether it is there for the test alone.
    is_made: bool,
}

impl OrdinaryUser {
    /// One with a range of subordinate ids, as distributions give it to people.
    ///
    /// # Panics
    /// If the user cannot be made.
    #[must_use]
    pub fn with_ids() -> Self {
        Self::make(true)
    }

    /// One without.
    ///
    /// # Panics
    /// If the user cannot be made.
    #[must_use]
    pub fn without_ids() -> Self {
        Self::make(false)
    }

    fn make(has_ids: bool) -> Self {
        if !nix::unistd::geteuid().is_root() {
            assert!(!has_ids, "only root can make users with subordinate ids");
            return Self::present();
        }
        let name = format!("tc{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let home = place::fresh_dir();
        let _alone = database();
        let mut useradd = command("useradd");
        // Group 100, which every Debian has: the user's groups are seen where they cannot be dropped.
        useradd.args(["-M", "-U", "-G", "users", "-s", "/bin/sh", "-d"]).arg(home.path()).arg(&name);
        assert_eq!(run(&mut useradd).expect_code(0).code, 0);
        let user = User::from_name(&name).expect("the user can be looked up").expect("the user is there");
        if !has_ids {
            for (file, option) in [("/etc/subuid", "--del-subuids"), ("/etc/subgid", "--del-subgids")] {
                for (first, count) in ranges(file, &name) {
                    let range = format!("{first}-{}", first + count - 1);
                    assert_eq!(run(command("usermod").args([option, &range, &name])).expect_code(0).code, 0);
                }
            }
        }
        let range = ranges("/etc/subuid", &name).first().copied();
        assert_eq!(range.is_some(), has_ids, "useradd gives a range by itself (login.defs(5), SUB_UID_COUNT)");
        let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
        Self::at_home(Account { name, uid, gid, range, home, binary: readable_binary(), is_made: true })
    }

    /// Whoever runs this, with a home for the test.
    fn present() -> Self {
        let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        let home = place::fresh_dir();
        let binary = readable_binary();
        Self::at_home(Account { name: uid.to_string(), uid, gid, range: None, home, binary, is_made: false })
    }

    fn at_home(account: Account) -> Self {
        let user = Self(Arc::new(account));
        user.own(user.home());
        for folder in [user.runtime(), user.state()] {
            std::fs::create_dir_all(&folder).expect("a folder of the user's");
            user.own(&folder);
        }
        user.own(&user.home().join("lib"));
        user
    }

    /// Gives a path to the user.
    ///
    /// # Panics
    /// If it cannot be given.
    pub fn own(&self, path: &Path) {
        nix::unistd::chown(path, Some(Uid::from_raw(self.uid())), Some(Gid::from_raw(self.gid())))
            .unwrap_or_else(|errno| panic!("{}: {errno}", path.display()));
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its number.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.0.uid
    }

    /// Its group's number.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.0.gid
    }

    /// Its number and its group's.
    #[must_use]
    pub fn ids(&self) -> (u32, u32) {
        (self.0.uid, self.0.gid)
    }

    /// First and count of its subordinate user ids.
    #[must_use]
    pub fn range(&self) -> Option<(u32, u32)> {
        self.0.range
    }

    /// Whether a process is this user's, or one of a cell of it.
    #[must_use]
    pub fn has(&self, uid: u32) -> bool {
        uid == self.uid() || self.range().is_some_and(|(first, count)| uid >= first && uid - first < count)
    }

    /// Its home.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.0.home.path()
    }

    /// XDG_RUNTIME_DIR.
    #[must_use]
    pub fn runtime(&self) -> PathBuf {
        self.home().join("run")
    }

    /// XDG_STATE_HOME.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.home().join("lib/state")
    }

    /// Any program, as this user would start it after a login.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = command(program);
        command.uid(self.uid()).gid(self.gid()).current_dir(self.home());
        self.environment(&mut command);
        command
    }

    /// A `toolcell` command line of this user's.
    #[must_use]
    pub fn toolcell(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.binary());
        command.args(args);
        command
    }

    /// The program under test, where everybody can read it.
    #[must_use]
    pub fn binary(&self) -> String {
        self.0.binary.to_string_lossy().into_owned()
    }

    /// Exactly what a login sets.
    pub fn environment(&self, command: &mut Command) {
        command.env_clear().env("HOME", self.home()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.env("XDG_RUNTIME_DIR", self.runtime()).env("XDG_STATE_HOME", self.state());
    }

    /// Every process of this user and of its cells, zombies left out.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        Process::all().into_iter().filter(|process| process.state != 'Z' && self.has(process.uid)).collect()
    }

    /// The launchers of daemons that this user's commands started.
    #[must_use]
    pub fn launchers(&self) -> Vec<Process> {
        let is_launcher = |process: &Process| process.line.split(' ').nth(1) == Some("launcher");
        let is_first = |process: &Process| process.status("NSpid").split_whitespace().count() == 1;
        let is_one = |process: &Process| is_launcher(process) && is_first(process) && process.name != OPENER;
        self.processes().into_iter().filter(is_one).collect()
    }

    /// Ends them, as whoever logs out does.
    ///
    /// # Panics
    /// If one stays.
    pub fn end_daemons(&self) {
        for launcher in self.launchers() {
            let pid = i32::try_from(launcher.pid).expect("process ids are small");
            // It may have ended by itself meanwhile.
            if nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).is_ok() {
                eventually("the end of a daemon", || (!launcher.is_alive()).then_some(()));
            }
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if !self.is_made {
            return;
        }
        let _alone = database();
        let removed = run(command("userdel").args(["--force", &self.name]));
        if !std::thread::panicking() {
            assert!(removed.code == 0, "userdel {}: {}", self.name, removed.stderr);
            assert!(ranges("/etc/subuid", &self.name).is_empty(), "its range went with it");
        }
    }
}

/// useradd and userdel do not wait for one another.
fn database() -> Flock<File> {
    let file = File::create(place::root().join("users.lock")).expect("the lock file opens");
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_file, errno)| errno).expect("the lock is had")
}

fn ranges(file: &str, name: &str) -> Vec<(u32, u32)> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let range = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.first() == Some(&name)).then_some(())?;
        Some((fields.get(1)?.parse().ok()?, fields.get(2)?.parse().ok()?))
    };
    text.lines().filter_map(range).collect()
}

/// A copy of the program where every user can reach it, made once per build.
fn readable_binary() -> PathBuf {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let source = toolcell_path();
    let meta = source.metadata().expect("the program is built");
    let dir = place::root().join(format!("binary-{:x}-{:x}-{:x}", meta.len(), meta.mtime(), meta.mtime_nsec()));
    let lock = File::create(place::root().join("binary.lock")).expect("the lock file opens");
    let _held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_file, errno)| errno).expect("the lock is had");
    if !dir.is_dir() {
        let fresh = tempfile::tempdir_in(place::root()).expect("a fresh directory").keep();
        std::fs::copy(&source, fresh.join("toolcell")).expect("the program can be copied");
        for path in [fresh.clone(), fresh.join("toolcell")] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode can be set");
        }
        std::fs::rename(&fresh, &dir).expect("the directory gets its name");
    }
    dir.join("toolcell")
}
