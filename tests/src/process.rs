//! Processes as /proc shows them, from outside.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::wait::eventually;

/// Name of the process that opens callers' mounts for the launcher. It is a copy of it, with its command line.
pub const OPENER: &str = "toolcell-opener";

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id on the host.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Its real user id on the host.
    pub uid: u32,
    /// Its name (comm).
    pub name: String,
    /// Its command line, space-separated.
    pub line: String,
    /// Its lines of /proc/PID/cgroup.
    pub cgroups: String,
    /// Its state letter.
    pub state: char,
}

impl Process {
    /// Every process that is there now.
    ///
    /// # Panics
    /// If /proc cannot be listed.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let entries = std::fs::read_dir("/proc").expect("/proc can be listed");
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(Self::read).collect()
    }

    /// The process of that id, if it is still there.
    #[must_use]
    pub fn read(pid: u32) -> Option<Self> {
        let text = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        let status = text("status")?;
        let field = |name: &str| field_of(&status, name);
        Some(Self {
            pid,
            parent: field("PPid")?.parse().ok()?,
            uid: field("Uid")?.split_whitespace().next()?.parse().ok()?,
            name: field("Name")?,
            line: text("cmdline").unwrap_or_default().replace('\0', " ").trim().to_owned(),
            cgroups: text("cgroup").unwrap_or_default(),
            state: field("State")?.chars().next()?,
        })
    }

    /// Whether it is this very process still (and not only a zombie's entry).
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.name == self.name && now.state != 'Z')
    }

    /// A file of its /proc directory.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        let path = format!("/proc/{}/{name}", self.pid);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A field of its status file.
    ///
    /// # Panics
    /// If there is no such field.
    #[must_use]
    pub fn status(&self, name: &str) -> String {
        field_of(&self.file("status"), name).unwrap_or_else(|| panic!("status has no {name}"))
    }

    /// The link of one of its namespaces, like `net:[4026531840]`.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn namespace(&self, kind: &str) -> String {
        let path = format!("/proc/{}/ns/{kind}", self.pid);
        let link = std::fs::read_link(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        link.to_string_lossy().into_owned()
    }

    /// A path as it sees it, reached from outside.
    #[must_use]
    pub fn root(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.pid))
    }
}

/// A field of /proc/PID/status, if the process is there.
#[must_use]
pub fn status_field(pid: u32, name: &str) -> Option<String> {
    field_of(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, name)
}

fn field_of(status: &str, name: &str) -> Option<String> {
    let line = status.lines().find(|line| line.split(':').next() == Some(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The descriptors of a process: number and what it is.
#[must_use]
pub fn descriptors_of(pid: u32) -> BTreeMap<u32, String> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return BTreeMap::new();
    };
    let links = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let number = entry.file_name().to_str()?.parse().ok()?;
        Some((number, std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned()))
    });
    links.collect()
}

/// Waits until none of these is alive.
///
/// # Panics
/// After the suite's deadline, naming one that is.
pub fn wait_gone(processes: &[Process]) {
    eventually("the end of every process of the list", || {
        processes.iter().all(|process| !process.is_alive()).then_some(())
    });
}
