//! A survey's cell: built as any other, but what runs in it is this very program, by the launcher's own choice.
//!
//! Guarantees: the daemon says only which of four acts is to be tried. Program, arguments, environment and limits are made
//! here, the root as well (with another loader in it even this program would be somebody's), so that a cell whose controls were not all seen to hold is never let go for anything that a caller names. What is
//! outside for a probe to find was reached by the launcher itself from where it stands, else it is not told of.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::OpenTreeFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use toolcell_doctor::probe;
use toolcell_sys::{MessageQueue, MountAttr, set_mount_attributes};
use toolcell_types::doctor::{Outer, SurveyAct};
use toolcell_types::plan::{Go, ImageEntry, LaunchFault};

use crate::workshop::Passed;

/// Looked for at /proc/self/exe, which is what runs, whatever lies at its path by now.
const OWN_FILE: &str = "/proc/self/exe";

/// What this program needs to run, as the image `host` has it.
pub(crate) const ROOT: [ImageEntry<'static>; 9] = [
    ImageEntry::Bind { host: "/usr", inside: "/usr", optional: false },
    ImageEntry::Mirror { path: "/bin" },
    ImageEntry::Mirror { path: "/sbin" },
    ImageEntry::Mirror { path: "/lib" },
    ImageEntry::Mirror { path: "/lib32" },
    ImageEntry::Mirror { path: "/lib64" },
    ImageEntry::Mirror { path: "/libx32" },
    ImageEntry::Dir { inside: "/etc" },
    ImageEntry::Bind { host: "/etc/ld.so.cache", inside: "/etc/ld.so.cache", optional: true },
];

/// What is outside, as long as a probe may look for it.
#[derive(Debug)]
pub(crate) struct Outside {
    outer: Outer,
    _listener: Option<OwnedFd>,
    _queue: Option<MessageQueue>,
}

impl Outside {
    /// Makes what can be made and reaches for it. `path` is a folder of the host's that is not in any cell.
    pub(crate) fn prepare(path: &Path) -> Self {
        let random = random();
        let name = format!("toolcell-survey-{random:08x}");
        let listener = listen(&name).inspect_err(|error| tracing::debug!(%error, "no socket for a survey")).ok();
        // Never 0, which would be IPC_PRIVATE.
        let key = i32::try_from((random & 0x7fff_ffff) | 1).unwrap_or(1);
        let queue = MessageQueue::make(key).and_then(|queue| MessageQueue::find(key).map(|()| queue));
        let queue = queue.inspect_err(|error| tracing::debug!(%error, "no message queue for a survey")).ok();
        let outer = Outer {
            socket: listener.is_some().then_some(name),
            queue: queue.as_ref().map(MessageQueue::key),
            path: path.exists().then(|| path.to_string_lossy().into_owned()),
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        };
        Self { outer, _listener: listener, _queue: queue }
    }
}

/// Only so that two launchers do not take the same name at once.
fn random() -> u32 {
    let mut bytes = [0_u8; 4];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(4) => u32::from_ne_bytes(bytes),
        Ok(_) | Err(_) => std::process::id(),
    }
}

/// Listens at an abstract socket (unix(7)), and has connected to it.
fn listen(name: &str) -> Result<OwnedFd, rustix::io::Errno> {
    let socket = || rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let listener = socket()?;
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, 4)?;
    rustix::net::connect(socket()?, &address)?;
    Ok(listener)
}

/// The half of the plan that a survey's cell reads, and this program to be shown in it.
pub(crate) fn passed(act: SurveyAct, outside: Option<&Outside>) -> Result<Passed, LaunchFault> {
    let fault = |what: &'static str| {
        move |error: io::Error| LaunchFault::Stage {
            stage: "survey".to_owned(),
            errno: error.raw_os_error().unwrap_or(nix::libc::EIO),
            detail: format!("{what}: {error}"),
        }
    };
    let program = own_file().map_err(fault("show toolcell's own file in the cell"))?;
    let mut argv = [probe::PROGRAM, probe::COMMAND, act.as_str()].map(str::to_owned).to_vec();
    if let (SurveyAct::Probe, Some(outside)) = (act, outside) {
        let told = serde_json::to_string(&outside.outer).map_err(|error| fault("say what is outside")(error.into()))?;
        argv.push(told);
    }
    let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/tmp"), ("LANG", "C.UTF-8")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let go = Go { argv, env, cwd: "/tmp".to_owned() };
    let bytes = postcard::to_stdvec(&go).map_err(|error| fault("encode")(io::Error::other(error)))?;
    let go = toolcell_sys::sealed_memory("survey", &bytes).map_err(fault("make a memory file"))?;
    Ok(Passed { go: go.into(), stdin: None, program: Some(program) })
}

/// The file of this program as a detached, read-only mount. By its path, as the file that runs may be of another mount
/// namespace, whose mounts cannot be cloned (open_tree(2)); but only if it is that very file.
fn own_file() -> io::Result<OwnedFd> {
    let path = std::fs::read_link(OWN_FILE)?;
    let file = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    if identity(rustix::fs::fstat(&file)?) != identity(rustix::fs::statat(CWD, OWN_FILE, rustix::fs::AtFlags::empty())?)
    {
        return Err(io::Error::other(format!("{} is not the file any more that runs", path.display())));
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = rustix::mount::open_tree(file.as_fd(), "", flags)?;
    let attr = MountAttr { read_only: true, no_suid: true, no_dev: true, no_exec: false, private: true };
    set_mount_attributes(tree.as_fd(), attr, false)?;
    drop(File::from(file));
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_can_be_reached_from_here_and_is_gone_after() {
        let folder = tempfile::tempdir().unwrap();
        let outside = Outside::prepare(folder.path());
        let Outer { socket, queue, path, pid, .. } = outside.outer.clone();
        let address = SocketAddrUnix::new_abstract_name(socket.unwrap().as_bytes()).unwrap();
        let connect = || {
            let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
            rustix::net::connect(&socket, &address)
        };
        connect().unwrap();
        MessageQueue::find(queue.unwrap()).unwrap();
        assert_eq!(path.as_deref(), folder.path().to_str());
        assert_eq!(u32::try_from(pid), Ok(std::process::id()));
        drop(outside);
        assert!(connect().is_err());
        assert!(MessageQueue::find(queue.unwrap()).is_err());
    }
}
