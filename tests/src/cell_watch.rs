//! Counts the cells that an instance builds, by the cgroups that it makes for them.

use std::ffi::OsString;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use crate::Instance;

/// Sees every cgroup that is made below the instance's own from now on.
#[derive(Debug)]
pub struct CellWatch {
    inotify: Inotify,
    seen: Vec<OsString>,
}

impl CellWatch {
    /// Starts to watch.
    ///
    /// # Panics
    /// If the instance's cgroup cannot be watched.
    #[must_use]
    pub fn on(instance: &Instance) -> Self {
        let dir = instance.cgroup_dir("memory");
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).expect("inotify is there");
        inotify.add_watch(&dir, AddWatchFlags::IN_CREATE).unwrap_or_else(|errno| panic!("{}: {errno}", dir.display()));
        Self { inotify, seen: Vec::new() }
    }

    /// How many cells were begun since the watch was set.
    ///
    /// # Panics
    /// If the kernel does not say.
    #[must_use]
    pub fn cells(&mut self) -> usize {
        loop {
            match self.inotify.read_events() {
                Ok(events) => self.seen.extend(events.into_iter().filter_map(|event| event.name)),
                Err(Errno::EAGAIN) => return self.seen.len(),
                Err(errno) => panic!("inotify: {errno}"),
            }
        }
    }
}
