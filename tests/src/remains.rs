//! What is left of an instance, on the whole machine: processes, cgroups, mounts, sockets.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::OrdinaryUser;
use crate::host::{groups_named, mount_lines};
use crate::place::in_range;
use crate::process::Process;

/// Where to look for an instance's remains.
#[derive(Debug, Clone)]
pub struct Remains {
    pub(crate) uid_base: u32,
    pub(crate) user: Option<OrdinaryUser>,
    pub(crate) instance: Option<String>,
    pub(crate) socket: PathBuf,
    pub(crate) dir: PathBuf,
}

impl Remains {
    /// Processes by user id, by cgroup and by command line. Zombies are not counted: whose parent died belongs to the
    /// machine's init, which takes its time.
    #[must_use]
    pub fn processes(&self) -> Vec<String> {
        let group = self.instance.as_ref().map(|name| format!("/{name}"));
        let dir = self.dir.to_string_lossy().into_owned();
        let ours = Process::all().into_iter().filter(|process| {
            let by_cgroup = group.as_ref().is_some_and(|group| process.cgroups.contains(group.as_str()));
            let by_line = process.line.contains(&dir) && process.pid != std::process::id();
            process.state != 'Z' && (self.has(process.uid) || by_cgroup || by_line)
        });
        ours.map(|process| format!("process {} {} {:?}", process.pid, process.name, process.line)).collect()
    }

    /// Whether it is an id of the instance's alone; those of a user's cells, but not the user's own.
    fn has(&self, uid: u32) -> bool {
        match &self.user {
            Some(user) => uid != user.uid() && user.has(uid),
            None => in_range(self.uid_base, uid),
        }
    }

    /// Cgroup directories.
    #[must_use]
    pub fn cgroups(&self) -> Vec<String> {
        let Some(name) = &self.instance else {
            return Vec::new();
        };
        groups_named(name).into_iter().map(|dir| format!("cgroup {}", dir.display())).collect()
    }

    /// Mounts that show the instance's directory.
    #[must_use]
    pub fn mounts(&self) -> Vec<String> {
        let dir = self.dir.to_string_lossy().into_owned();
        mount_lines("self").into_iter().filter(|line| line.contains(&dir)).map(|line| format!("mount {line}")).collect()
    }

    /// The socket's path, and names of sockets that the kernel still lists.
    #[must_use]
    pub fn sockets(&self) -> Vec<String> {
        let path = self.socket.to_string_lossy().into_owned();
        let mut found: Vec<String> = Vec::new();
        if self.socket.symlink_metadata().is_ok() {
            found.push(format!("socket file {path}"));
        }
        let table = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        found.extend(table.lines().filter(|line| line.ends_with(&path)).map(|line| format!("socket {line}")));
        found
    }

    /// Files of the runtime directory that carry the instance's name or its range of user ids.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let lock = Path::new("/run/toolcell/uids").join(self.uid_base.to_string());
        let entries = std::fs::read_dir("/run/toolcell").into_iter().flatten().filter_map(Result::ok);
        let named = entries.map(|entry| entry.path()).filter(|path| {
            let name = self.instance.as_deref();
            name.is_some_and(|name| path.to_string_lossy().contains(name))
        });
        let found = named.chain(std::iter::once(lock)).filter(|path| path.symlink_metadata().is_ok());
        found.map(|path| format!("file {}", path.display())).collect()
    }

    /// Everything.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        [self.processes(), self.cgroups(), self.mounts(), self.sockets(), self.files()].concat()
    }

    /// Waits until nothing is left: who dies with a parent dies a moment after it.
    ///
    /// # Panics
    /// Naming what still is there after five seconds.
    pub fn vanish(&self) {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let left = self.all();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "left: {left:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
