//! The id maps of the user namespace, written by newuidmap(1) and newgidmap(1), which alone may give away a user's
//! subordinate ids.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use rustix::process::{WaitId, WaitIdOptions, waitid};
use toolcell_sys::Child;

use super::block::Block;
use super::error::RootlessError;
use super::subids::Range;
use crate::serve::error::{ServeError, file};

/// Where distributions put them. Not the PATH: both run as root.
const FOLDERS: [&str; 5] = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"];

/// The two programs of the package uidmap.
#[derive(Debug)]
pub(super) struct Helpers {
    users: CString,
    groups: CString,
}

/// Who this process is before it enters the namespace; in it, nobody has a name before the maps are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    user: u32,
    group: u32,
}

impl Own {
    pub(super) fn of_process() -> Self {
        Self { user: rustix::process::geteuid().as_raw(), group: rustix::process::getegid().as_raw() }
    }

    /// The maps that an ordinary user may write without any help.
    pub(super) fn map_alone(self) -> io::Result<()> {
        toolcell_sys::map_own_user(self.user, self.group)
    }
}

impl Helpers {
    /// Both; or what is missing.
    pub(super) fn find() -> Result<Self, String> {
        let find = |name: &str| {
            let is_program = |path: &PathBuf| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
            let found = FOLDERS.iter().map(|folder| PathBuf::from(folder).join(name)).find(is_program);
            let path = found.and_then(|path| CString::new(path.into_os_string().into_encoded_bytes()).ok());
            path.ok_or_else(|| format!("{name} is not installed"))
        };
        Ok(Self { users: find("newuidmap")?, groups: find("newgidmap")? })
    }

    /// Starts both, from outside of the namespace that this process is about to enter. They wait for the word.
    pub(super) fn start(&self, own: &Own, block: &Block) -> io::Result<Waiting> {
        let users = Helper::start(&self.users, (own.user, block.users()))?;
        let groups = Helper::start(&self.groups, (own.group, block.groups()));
        match groups {
            Ok(groups) => Ok(Waiting { users, groups }),
            Err(error) => {
                users.end();
                Err(error)
            }
        }
    }
}

/// Both, waiting.
#[derive(Debug)]
pub(super) struct Waiting {
    users: Helper,
    groups: Helper,
}

impl Waiting {
    /// Ends both, for a namespace that cannot be had.
    pub(super) fn end(self) {
        self.users.end();
        self.groups.end();
    }

    /// Lets them write the maps. On failure neither is written, or the start fails at the next step.
    pub(super) fn write(self) -> Result<(), String> {
        let groups = self.groups.write();
        match groups {
            Ok(()) => self.users.write(),
            Err(why) => {
                self.users.end();
                Err(why)
            }
        }
    }
}

/// One program.
#[derive(Debug)]
struct Helper {
    name: String,
    child: Child,
    word: OwnedFd,
    said: OwnedFd,
}

impl Helper {
    fn start(program: &CString, (own, range): (u32, Range)) -> io::Result<Self> {
        let (wait, word) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (said, say) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let name = program.to_string_lossy().into_owned();
        let process = rustix::process::getpid().as_raw_nonzero().to_string();
        let (own, first, count) = (own.to_string(), range.first.to_string(), range.count.to_string());
        let words = [name.as_str(), &process, &own, &own, "1", &first, &first, &count].map(CString::new);
        let words = words.into_iter().collect::<Result<Vec<_>, _>>()?;
        let child = toolcell_sys::clone_process(0, None, || {
            let mut byte = [0_u8; 1];
            // The pipe's other end is nobody's but the parent's, so that its end shows even if it came before the signal.
            let ready = toolcell_sys::close_except(&[wait.as_raw_fd(), say.as_raw_fd()]).is_ok()
                && toolcell_sys::parent_death_signal().is_ok()
                && rustix::io::retry_on_intr(|| rustix::io::read(&wait, &mut byte)) == Ok(1)
                && rustix::stdio::dup2_stderr(&say).is_ok()
                && rustix::stdio::dup2_stdout(&say).is_ok();
            match ready.then(|| nix::unistd::execve(program, &words, &[c"LANG=C"])) {
                Some(Ok(never)) => match never {},
                Some(Err(_)) | None => 127,
            }
        })
        .map_err(|error| io::Error::from_raw_os_error(error.errno()))?;
        Ok(Self { name, child, word, said })
    }

    fn write(self) -> Result<(), String> {
        let failed = |why: String| format!("{} failed: {why}", self.name);
        rustix::io::write(&self.word, b"x").map_err(|errno| failed(errno.to_string()))?;
        let reap = || waitid(WaitId::PidFd(self.child.pidfd.as_fd()), WaitIdOptions::EXITED);
        let status = rustix::io::retry_on_intr(reap).map_err(|errno| failed(errno.to_string()))?;
        if status.and_then(|status| status.exit_status()) == Some(0) {
            return Ok(());
        }
        let mut text = String::new();
        // The pipe's other end went with the program; what is no text is no reason.
        let length = File::from(self.said).take(512).read_to_string(&mut text);
        let said = text.trim().lines().next_back().unwrap_or_default().to_owned();
        Err(format!(
            "{} failed: {}",
            self.name,
            if length.is_err() || said.is_empty() { "it said nothing" } else { &said }
        ))
    }

    /// Ends one that is not needed any more. If that fails it dies with us.
    fn end(self) {
        let ended = rustix::process::pidfd_send_signal(&self.child.pidfd, rustix::process::Signal::KILL)
            .and_then(|()| waitid(WaitId::PidFd(self.child.pidfd.as_fd()), WaitIdOptions::EXITED));
        if let Err(errno) = ended {
            tracing::warn!(program = self.name, error = %errno, "a helper that is not needed cannot be ended");
        }
    }
}

/// The maps as the kernel has them.
pub(super) fn read_back(own: &Own, block: &Block) -> Result<(), ServeError> {
    let all = [("/proc/self/uid_map", own.user, block.users()), ("/proc/self/gid_map", own.group, block.groups())];
    for (path, id, range) in all {
        let text = file("read", path, std::fs::read_to_string(path))?;
        let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut got: Vec<String> = text.lines().map(squeeze).collect();
        let mut wanted = vec![format!("{id} {id} 1"), format!("{0} {0} {1}", range.first, range.count)];
        got.sort();
        wanted.sort();
        if got != wanted {
            let source = RootlessError::Map { file: path, wanted: wanted.join(", "), got: got.join(", ") };
            return Err(ServeError::Rootless { source });
        }
    }
    Ok(())
}
